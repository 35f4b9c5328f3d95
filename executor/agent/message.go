package agent

import (
	"tensile/device/lease"
	"tensile/executor"
	"tensile/graph"
	"tensile/models/task"
	"tensile/plan/proof"
	"tensile/wire"
)

// Input is what a machine is told; exactly one field is set, but for Loss and Waits.
type Input struct {
	Orders   *wire.Orders
	Prepared *Prepared
	Met      *Met
	Fetched  *Fetched
	Event    *executor.Event
	Loss     *wire.Loss // of the iteration that Event reports; nil: there is none
	Kept     *Kept
	Stored   *Stored
	Written  *Written
	Online   *bool                // the connection is there, or lost; it is not there at first
	Tick     bool                 // it is time for a heartbeat
	Waits    map[lease.Job]string // with Tick: what jobs wait for that have waited long for the lease
	Drain    error                // the process is to end for this reason, once its jobs have been stopped and saved
	Quit     error                // the process has to end, and its jobs have ended already
	Closed   bool                 // after the last output was carried out, and nothing is open on the device any more
}

// Output is what a machine wants done; exactly one field is set. Outputs are to be carried out in their order.
type Output struct {
	Prepare *Prepare
	Meet    *Meet
	Join    *Join
	Part    string // the connections of the replica of that name are to be closed; there may be none
	Fetch   *Fetch
	Open    *Open   // a job is to be submitted to the host
	Change  *Change // it is to train with another program
	Stop    string  // the host is to stop the job of that name
	Park    *Park   // it is to have it rest in Home
	Resume  string  // it is to have it go on
	Take    *Take
	Remove  string
	Write   *Write
	Discard *Discard
	Keep    *Keep
	Store   *Store
	Status  *wire.Status
	Report  *wire.Report
	Link    *wire.Rates // what copies may take has changed
	Lend    *wire.Lease // how jobs get memory has changed; before one of them is opened. See Lend
	Weigh   *Weigh      // what a job is worth has changed, where jobs share memory
	Trace   *Trace      // the host is to tell what a job does

	Unplanned *Unplanned
	Event     *Event // for logs
	Leave     bool   // the process is to end
	Refused   string // it is to end at once: why the controller does not want it
}

// Spare releases the snapshot that an input brings, unless the machine, which answered with these outputs, wants it
// written.
func (in Input) Spare(outputs []Output) {
	if in.Event == nil || in.Event.Snapshot == nil || in.Event.Snapshot.Release == nil {
		return
	}
	for _, o := range outputs {
		if o.Write != nil && o.Write.Snapshot == in.Event.Snapshot {
			return
		}
	}
	in.Event.Snapshot.Release()
}

// Ticket tells jobs apart, also those of one name.
type Ticket int64

// Prepare asks for the graph and the data of a job, and for where it begins.
type Prepare struct {
	Ticket      Ticket
	Spec        wire.Spec
	Incarnation int64
	From        int  // iterations of the newest checkpoint that the controller knows of; 0: of none
	Exact       bool // it begins with that one, or with no iteration, and with no newer one
}

// Prepared answers it.
type Prepared struct {
	Ticket Ticket
	Graph  graph.Digest // of the task, if it is a script's
	Task   task.Task
	Begin  *Begin   // nil: with no iteration
	Notes  []string // that its owner wants to know, a line each
	Err    error
	Again  bool // the error may be gone the next time
}

// Begin is where a job goes on. The first contents of its storages are in its task.
type Begin struct {
	Iteration int       // complete ones
	Losses    []float32 // of these; nil without data
	File      string    // the checkpoint
	// that as one of the job's own; nil: it is that of the spec
	Checkpoint *wire.Checkpoint
}

// Meet asks for a replica to listen for the next one, if there is one.
type Meet struct {
	Ticket Ticket
	Spec   wire.Spec
	Task   task.Task
	Begin  int // complete iterations with which it begins
}

// Met answers it.
type Met struct {
	Ticket  Ticket
	Meeting *wire.Meeting // nil of the last replica
	Err     error
}

// Join tells a replica where the one before it listens.
type Join struct {
	Job     string
	Meeting wire.Meeting
}

// Park has a job rest in Home. The host names the number when it does: what it said of an earlier one may come late.
type Park struct {
	Job    string
	Number int64
	At     int // of a replica: complete iterations after which it rests, or trains on if it has begun more
}

// Take has the host take the state of a job for a checkpoint.
type Take struct {
	Job string
	At  int // of a replica: complete iterations after which, or not at all if it has begun more; 0: the next ones
}

// Weigh says what a job is worth against others when it asks for memory.
type Weigh struct {
	Job    string
	Weight int
}

// Trace has the host tell what a job does in so many iterations.
type Trace struct {
	Job        string
	Iterations int
}

// Unplanned says why there is no plan for what the script of a job has recorded.
type Unplanned struct{ Job, Why string }

// Fetch asks for a layout, to be proven.
type Fetch struct {
	Ticket Ticket
	Job    string
	ID     int64 // of the spec
	Epoch  int64
	Task   task.Task

	Checkpoints bool // the job takes some: its program is to have a snapshot section
}

// Fetched answers it.
type Fetched struct {
	Ticket Ticket
	Epoch  int64
	Proven proof.Proven
	Peak   graph.Bytes // of its slots
	Err    error
	Again  bool
}

// Open is a job and its first program.
type Open struct {
	Ticket Ticket
	Spec   wire.Spec
	Task   task.Task
	Begin  *Begin // nil: with no iteration
	Every  int    // see executor.Spec
	Proven proof.Proven
}

// Write asks for a checkpoint to be written, and the snapshot to be released then.
type Write struct {
	Ticket      Ticket
	Spec        wire.Spec
	Incarnation int64
	Task        task.Task
	Snapshot    *executor.Snapshot
	Keep        int // no checkpoint of so many iterations or more is removed to keep few
}

// Written answers it.
type Written struct {
	Ticket     Ticket
	Checkpoint *wire.Checkpoint
	Err        error
}

// Discard asks for the checkpoints of a job that is over to be removed.
type Discard struct {
	Job         string
	ID          int64
	Incarnation int64
}

// Change is another program for a job.
type Change struct {
	Job    string
	Proven proof.Proven
}

// Keep asks for what a job has come to, before it is removed from the host.
type Keep struct {
	Ticket      Ticket
	Spec        wire.Spec
	Incarnation int64
	Task        task.Task
	Ended       *executor.Ended
}

// Kept answers it.
type Kept struct {
	Ticket  Ticket
	Losses  []float32        // per iteration; nil without data
	Weights map[int32]string // digests of persistent storages; nil without data
	Saved   string           // the file that holds them; "": they were not to be saved
	Err     error            // they could not be saved, or are not worth it

	Checkpoint *wire.Checkpoint // of a job that could not be saved, written in its place; nil: none was
	Again      bool             // it is on no disk, and may be the next time
}

// Store asks for a result to be stored where the controller finds it.
type Store struct {
	Ticket Ticket
	Key    string
	Result *wire.Result
}

// Stored answers it.
type Stored struct {
	Ticket Ticket
	Err    error
}
