package wire

import (
	"tensile/graph"
)

// Status says all that an executor does.
type Status struct {
	// Executor is the executor's name.
	Executor string `json:"executor"`
	// Number rises from status to status of one Life. The largest is the newest.
	Number int64 `json:"number" bound:"count"`
	// Life names the process: each process of an executor's name has another.
	Life string `json:"life"`
	// Device is the identity of the device. Devices of equal identity train a job to the same bits.
	Device string `json:"device"`
	// Host is the name of the machine on which the executor runs; "": unknown.
	Host string `json:"host,omitzero"`
	// Folder is the identity of the executor's folder of checkpoints; "": unknown.
	Folder string `json:"folder,omitzero"`
	// Place is where the leases are that the executor may share with others; "": it shares none.
	Place string `json:"place,omitzero"`
	// Since is when the process started, in nanoseconds since the Unix epoch; 0: unknown.
	Since int64 `json:"since_ns,omitzero" bound:"sum"`
	// Orders is the Number of the newest orders that the executor has seen; 0: none.
	Orders int64 `json:"orders" bound:"count"`
	// Dead are the lives of that name that are known to have ended.
	Dead []string `json:"dead,omitempty"`
	// Leaves says that the executor was interrupted: it takes no more jobs, and ends.
	Leaves bool `json:"leaves,omitzero"`
	// Brings describes the device that the executor brings; nil: it trains on the device of the controller's process.
	Brings *Device `json:"brings,omitempty"`
	// Jobs are the executor's jobs.
	Jobs []JobStatus `json:"jobs"`
}

// JobStatus is where a job of an executor is.
type JobStatus struct {
	// Name is the job's name.
	Name string `json:"name"`
	// ID is that of the job's Spec.
	ID int64 `json:"id,omitzero" bound:"count"`
	// Incarnation is that of the assignment that the executor follows.
	Incarnation int64 `json:"incarnation,omitzero" bound:"count"`
	// State is where the job is at this executor.
	State State `json:"state"`
	// Epoch numbers the layout in force; 0: none has been yet.
	Epoch int64 `json:"epoch" bound:"count"`
	// Arena is what the job has of the device now, in bytes.
	Arena graph.Bytes `json:"arena_bytes" bound:"bytes"`
	// Iteration is how many iterations are complete.
	Iteration int `json:"iteration" bound:"count"`
	// Checkpoint is the newest one; nil: none was taken.
	Checkpoint *Checkpoint `json:"checkpoint,omitempty"`
	// Begun is, for a replica, how many iterations the device was given, the complete ones included; 0 for other jobs.
	Begun int `json:"begun,omitzero" bound:"count"`
	// Since counts, for a replica, the iterations of the first of the checkpoints that were taken one every
	// Interval.Iterations without a gap and of which Checkpoint is the last; 0: the checkpoint before that is missing,
	// or is older than what the job began with.
	Since int `json:"since,omitzero" bound:"count"`
	// Meets is where the replica waits for the next one; nil: it is the last one, or does not wait yet.
	Meets *Meeting `json:"meets,omitempty"`
	// Alone says, for a failed replica, that it failed only because a connection to another replica broke. It can go on
	// from a checkpoint that all replicas have.
	Alone bool `json:"alone,omitzero"`
	// Error says in one line why the job failed or was suspended, or, in other states, what troubles it; "": nothing.
	Error string `json:"error,omitzero"`
	// Lacks says, for a failed job, that its newest checkpoint is on another machine.
	Lacks bool `json:"lacks,omitzero"`
	// Damaged says, for a failed replica, that the checkpoint with which all were to begin is damaged.
	Damaged bool `json:"damaged,omitzero"`
	// Diverged says, for a failed job, that its loss or a weight is no finite number.
	Diverged bool `json:"diverged,omitzero"`
	// Free is, for a job that failed because the device had no room for its arena, how many bytes were free; nil: it
	// did not fail for that reason.
	Free *graph.Bytes `json:"free_bytes,omitempty" bound:"bytes"`
	// Result is what a job that is over came to. Its losses and weights are stored apart; nil before that.
	Result *Result `json:"result,omitempty"`
	// Script is what a script has of the device; nil: the job is no script, or has not told yet.
	Script *Allocated `json:"script,omitempty"`
}

// Allocated is what the allocator of a script has of the device, as the script measures it.
type Allocated struct {
	// Plan is what the plan in force needs, with what the script holds beside it, in bytes; 0: there is no plan.
	Plan graph.Bytes `json:"plan_bytes" bound:"bytes"`
	// Reserve is the most that the allocator has had beyond plans, in bytes. It counts with the claim.
	Reserve graph.Bytes `json:"reserve_bytes" bound:"bytes"`
	// Touched is the most that the allocator had in the newest iteration, in bytes.
	Touched graph.Bytes `json:"touched_bytes" bound:"bytes"`
	// Hooks says that the plan is played by hooks of what autograd saves, without a look at ops.
	Hooks bool `json:"hooks,omitzero"`
}

// State is where a job is in its life at an executor.
type State string

const (
	Waiting  State = "waiting"  // the job is in Home and waits for its first layout, or for its arena after a rest
	Running  State = "running"  // the job trains
	Resting  State = "resting"  // the job is in Home, parked in memory
	Finished State = "finished" // all iterations are complete
	Stopped  State = "stopped"  // the job ended because the orders said so
	Failed   State = "failed"   // the job ended because of an error
	// Suspended says that the job has left this executor, because it was parked on disk or the process was told to end.
	// It can go on elsewhere from its checkpoint.
	Suspended State = "suspended"
)

// Over reports whether the job has nothing of the device any more and never will.
func (s State) Over() bool { return s == Finished || s == Stopped || s == Failed || s == Suspended }
