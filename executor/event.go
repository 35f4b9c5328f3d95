package executor

import (
	"time"

	"tensile/graph"
)

// Event tells an observer what has become of a job. Exactly one of the fields after Job is set.
type Event struct {
	Job      string
	Report   *Report  // an iteration is complete
	Trace    *Trace   // what a section has done, where Host.Trace wants it: of an iteration it follows its Report
	Applied  *Applied // a program has come into force
	Home     bool     // the job has given its arena back, for good or until the next program
	Parked   int64    // it is in Home and stays there until it is resumed or stopped: the number of that Park
	Begun    int      // a Park or Checkpoint came too late for its number: so many iterations have begun
	Ended    *Ended   // it will train no more
	Refused  error    // a command for it was refused; the job goes on as if there had been none
	Troubled error    // the job goes on in spite of this
	Removed  bool     // there is no job of that name any more

	Snapshot *Snapshot // what came of a Checkpoint
}

// Snapshot is the state of a job at an iteration boundary.
type Snapshot struct {
	Err       error // there is none, and why; then nothing else is set
	Iteration int   // complete iterations

	// of persistent storages, by their IDs in the job's graph; nil on a device without data. They stay as they are
	// until Release, whatever becomes of the job.
	Contents map[graph.StorageID][]float32

	// Release gives the memory of the contents back. Any goroutine may call it, also after the job or the device was
	// closed; a second call does nothing.
	Release func()
}

// Applied is a program for which a job has got its arena.
type Applied struct {
	Epoch int64
	Arena graph.Bytes
}

// Ended is what a job came to. With an Err it is gone: its place on the device is closed and its name free. Without one
// it stays in Home until it is removed.
type Ended struct {
	Err        error // it could not be added, or the device gave it no arena
	Iterations int   // complete, those before it began included; fewer than were wanted if it was stopped
	Plans      int
	Transition time.Duration
	Touched    graph.Bytes                   // end of the highest range of its arenas that its commands used
	Weights    map[graph.StorageID][]float32 // of persistent storages, valid until it is removed; nil without data
}
