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
	// Orders have come from the controller.
	Orders *wire.Orders
	// Prepared answers Output.Prepare.
	Prepared *Prepared
	// Met answers Output.Meet.
	Met *Met
	// Fetched answers Output.Fetch.
	Fetched *Fetched
	// Event is what the host has observed.
	Event *executor.Event
	// Loss is the loss of the iteration that Event reports; nil: there is none.
	Loss *wire.Loss
	// Kept answers Output.Keep.
	Kept *Kept
	// Stored answers Output.Store.
	Stored *Stored
	// Written answers Output.Write.
	Written *Written
	// Online says whether there is a connection. There is none at first.
	Online *bool
	// Tick says that it is time for a heartbeat.
	Tick bool
	// Waits are, with Tick, what jobs wait for that have waited long for the lease.
	Waits map[lease.Job]string
	// Drain is why the process is to end once its jobs have been stopped and saved.
	Drain error
	// Quit is why the process has to end. Its jobs have ended already.
	Quit error
	// Closed says that the last output was carried out and nothing is open on the device any more.
	Closed bool
}

// Output is what a machine wants done; exactly one field is set. Outputs are to be carried out in their order.
type Output struct {
	// Prepare asks for the graph and the data of a job.
	Prepare *Prepare
	// Meet asks for a replica to listen for the next one.
	Meet *Meet
	// Join tells a replica where the one before it listens.
	Join *Join
	// Part names a replica whose connections are to be closed. It may have none.
	Part string
	// Fetch asks for a layout.
	Fetch *Fetch
	// Open submits a job to the host.
	Open *Open
	// Change has a job train with another program.
	Change *Change
	// Stop names a job that the host is to stop.
	Stop string
	// Park has a job rest in Home.
	Park *Park
	// Resume names a job that the host is to resume.
	Resume string
	// Take has the host take the state of a job.
	Take *Take
	// Remove names a job that the host is to remove.
	Remove string
	// Write has a checkpoint written.
	Write *Write
	// Discard has the checkpoints of a job removed.
	Discard *Discard
	// Keep has the result of a job taken and saved.
	Keep *Keep
	// Store has a result stored for the controller.
	Store *Store
	// Status is to be published.
	Status *wire.Status
	// Report is to be published.
	Report *wire.Report
	// Link changes what copies may take.
	Link *wire.Rates
	// Lend changes how jobs share memory, before one of them is opened. See ShareMemory.
	Lend *wire.Lease
	// Weigh changes what a job is worth, where jobs share memory.
	Weigh *Weigh
	// Trace has the host trace a job.
	Trace *Trace

	// Unplanned tells a script's job why it has no plan.
	Unplanned *Unplanned
	// Event is for logs.
	Event *Event
	// Leave ends the process.
	Leave bool
	// Refused ends the process at once. It is why the controller does not want it.
	Refused string
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
	// Ticket tells the job apart.
	Ticket Ticket
	// Spec is the job.
	Spec wire.Spec
	// Incarnation is that of the assignment.
	Incarnation int64
	// From is how many iterations the newest checkpoint has that the controller knows of; 0: it knows none.
	From int
	// Exact says that the job begins with that checkpoint, or with no iteration, and with no newer checkpoint.
	Exact bool
}

// Prepared answers it.
type Prepared struct {
	// Ticket is that of the Prepare.
	Ticket Ticket
	// Graph is the digest of a script's graph; "" for other jobs.
	Graph graph.Digest
	// Task is the graph with its data.
	Task task.Task
	// Begin is the checkpoint that the job goes on from; nil: it begins with no iteration.
	Begin *Begin
	// Notes are what the job's owner wants to know, a line each.
	Notes []string
	// Err is why there is no Task; nil: there is one.
	Err error
	// Again says that the error may be gone the next time.
	Again bool
}

// Begin is where a job goes on. The first contents of its storages are in its task.
type Begin struct {
	// Iteration is how many iterations are complete.
	Iteration int
	// Losses are theirs; nil without data.
	Losses []float32
	// File is the checkpoint's file.
	File string
	// Checkpoint is that file as a checkpoint of this job; nil: it is the one that the spec names.
	Checkpoint *wire.Checkpoint
}

// Meet asks for a replica to listen for the next one, if there is one.
type Meet struct {
	// Ticket tells the replica apart.
	Ticket Ticket
	// Spec is the replica.
	Spec wire.Spec
	// Task is its graph with its data.
	Task task.Task
	// Begin is how many iterations are complete when it begins.
	Begin int
}

// Met answers it.
type Met struct {
	// Ticket is that of the Meet.
	Ticket Ticket
	// Meeting is where the replica listens; nil for the last replica.
	Meeting *wire.Meeting
	// Err is why it does not listen; nil: it does, or need not.
	Err error
}

// Join tells a replica where the one before it listens.
type Join struct {
	Job     string
	Meeting wire.Meeting
}

// Park has a job rest in Home. The host names the number when it does: what it said of an earlier one may come late.
type Park struct {
	// Job is the job's name.
	Job string
	// Number is named again when the job rests, so that a late answer to an earlier Park is recognised.
	Number int64
	// At is, for a replica, the number of complete iterations after which it rests. It trains on if it has begun more;
	// 0 for others.
	At int
}

// Take has the host take the state of a job for a checkpoint.
type Take struct {
	// Job is the job's name.
	Job string
	// At is, for a replica, the number of complete iterations after which its state is taken, or never if it has begun
	// more; 0: at the next boundary.
	At int
}

// Weigh says what a job is worth against others when it asks for memory.
type Weigh struct {
	// Job is the job's name.
	Job string
	// Weight is what it is worth.
	Weight int
}

// Trace has the host tell what a job does in so many iterations.
type Trace struct {
	// Job is the job's name.
	Job string
	// Iterations is how many iterations are traced.
	Iterations int
}

// Unplanned says why there is no plan for what the script of a job has recorded.
type Unplanned struct{ Job, Reason string }

// Fetch asks for a layout, to be proven.
type Fetch struct {
	Ticket Ticket
	Job    string
	ID     int64 // the ID of the job's Spec
	Epoch  int64
	Task   task.Task

	Checkpoints bool // the job takes some: its program is to have a snapshot section
}

// Fetched answers it.
type Fetched struct {
	Ticket Ticket
	Epoch  int64
	Proven proof.Proven
	Peak   graph.Bytes // the slot peak of the layout's plan
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
	// Ticket is that of the Keep.
	Ticket Ticket
	// Losses are the losses per iteration; nil without data.
	Losses []float32
	// Weights are the digests of the persistent storages; nil without data.
	Weights map[int32]string
	// Saved is the file that holds the weights; "": they were not to be saved.
	Saved string
	// Err is why they could not be saved, or are not worth it; nil: neither is so.
	Err error

	// Checkpoint was written in place of weights that could not be saved; nil: none was.
	Checkpoint *wire.Checkpoint
	// Again says that the result is on no disk, and may be the next time.
	Again bool
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
