package executor

import (
	"time"

	"tensile/graph"
)

// Event tells an observer what has become of a job. Exactly one of the fields after Job is set.
type Event struct {
	// Job is the job's name.
	Job string
	// Report says that an iteration is complete.
	Report *Report
	// Trace is what a section has done, where Host.Trace asks for it. That of an iteration follows its Report.
	Trace *Trace
	// Applied says that a program has come into force.
	Applied *Applied
	// Home says that the job has given its arena back, for good or until the next program.
	Home bool
	// Parked says that the job is in Home and stays there until it is resumed or stopped. It is the number of the Park.
	Parked int64
	// Begun is how many iterations have begun, where a Park or Checkpoint came too late for its number.
	Begun int
	// Ended says that the job trains no more.
	Ended *Ended
	// Refused is why a command for the job was refused. The job goes on as if there had been none.
	Refused error
	// Troubled is an error that the job survives.
	Troubled error
	// Note is a line for the job's log.
	Note string
	// Removed says that there is no job of that name any more.
	Removed bool

	// Snapshot is what came of a Checkpoint.
	Snapshot *Snapshot
}

// Snapshot is the state of a job at an iteration boundary.
type Snapshot struct {
	// Err is why there is no state; then no other field is set. nil: there is one.
	Err error
	// Iteration is how many iterations are complete.
	Iteration int

	// Contents are those of persistent storages, by their IDs in the job's graph; nil on a device without data. They
	// stay as they are until Release, whatever becomes of the job.
	Contents map[graph.StorageID][]float32

	// Release gives the memory of the contents back. Any goroutine may call it, also after the job or the device was
	// closed; a second call does nothing.
	Release func()
}

// Applied is a program for which a job has got its arena.
type Applied struct {
	// Epoch numbers the program's plan.
	Epoch int64
	// Arena is the size of its arena in bytes.
	Arena graph.Bytes
}

// Ended is what a job came to. With an Err it is gone: its place on the device is closed and its name free. Without one
// it stays in Home until it is removed.
type Ended struct {
	// Err is why the job could not be added, or got no arena from the device, or failed; nil: it did not.
	Err error
	// Iterations is how many are complete, those before the job began included. They are fewer than wanted if it was
	// stopped.
	Iterations int
	// Plans is how many programs were applied.
	Plans int
	// Transition is the time between bodies of different stays outside of Home.
	Transition time.Duration
	// Touched is the highest byte of an arena that a command of the job has used.
	Touched graph.Bytes
	// Weights are the contents of persistent storages, valid until the job is removed; nil without data.
	Weights map[graph.StorageID][]float32
}
