package wire

import (
	"tensile/graph"
	"tensile/graph/cost"
)

// Orders say all that a controller wants of an executor.
type Orders struct {
	// Executor is the name of the executor that the orders are for.
	Executor string `json:"executor"`
	// On is the name of the device that the executor brings; "": it trains on the device of the controller's process.
	On string `json:"on,omitzero"`
	// Number rises from orders to orders, over restarts of the controller too. The largest is the newest.
	Number int64 `json:"number" bound:"count"`
	// Jobs are the assignments. A job that is not among them ends at once and is forgotten.
	Jobs []Assignment `json:"jobs"`
	// Leave tells the executor to end when its jobs are gone.
	Leave bool `json:"leave,omitzero"`
	// Elsewhere are the IDs of jobs that the executor had and that continue at another one. Their checkpoints stay.
	Elsewhere []int64 `json:"elsewhere,omitempty" bound:"count"`
	// Life names the only process that may follow the orders; "": any process of that name.
	Life string `json:"life,omitzero"`
	// Link limits the copies of all the executor's jobs together; zero: no limit.
	Link Rates `json:"link,omitzero"`

	// Refused names a process of that name that is to end; nil: none.
	Refused *Refusal `json:"refused,omitempty"`
	// Lease says how the jobs share memory; nil: each job has an arena of its own.
	Lease *Lease `json:"lease,omitempty"`
}

// Lease is how the jobs of an executor get memory of its device, beside those of other executors there.
type Lease struct {
	// Sharing is how the jobs share memory. It is never NoSharing here.
	Sharing Sharing `json:"memory_sharing"`
	// Capacity is the memory in bytes of all jobs of the device together; 0: no limit.
	Capacity graph.Bytes `json:"capacity_bytes,omitzero" bound:"sum"`
	// Number rises whenever the capacity changes, over restarts of the controller too. Whatever executor hears of it
	// first, the largest Number is the newest.
	Number int64 `json:"number" bound:"sum"`
	// Name is the name of the lease at every host; "": the executor chooses one.
	Name string `json:"name,omitzero"`
	// Page is the size of the device's pages in bytes; 0: the device has none.
	Page graph.Bytes `json:"page_bytes,omitzero" bound:"storage"`
}

// Refusal tells a process to end, because another process of its name runs or its device is not the expected one.
type Refusal struct {
	// Life names the process that is refused.
	Life string `json:"life"`
	// Reason says in one line why.
	Reason string `json:"why"`
}

// Rates are limits of copies, in bytes a second; 0: none but the device's own.
type Rates struct {
	Out cost.BytesPerSecond `json:"out" bound:"rate"`
	In  cost.BytesPerSecond `json:"in" bound:"rate"`
}

// Assignment is what an executor is to do for one job.
type Assignment struct {
	// Spec is the job.
	Spec Spec `json:"spec"`
	// Incarnation numbers the job's stays at executors. It rises each time that the job gets one.
	Incarnation int64 `json:"incarnation,omitzero" bound:"count"`
	// From is how many iterations the newest known checkpoint has; 0: there is none. For a replica From is exact: it
	// begins with its checkpoint after so many iterations, whatever newer ones there are, and no checkpoint from there
	// on is removed.
	From int `json:"from,omitzero" bound:"count"`
	// Epoch numbers the layout to train with; 0: there is none yet, and the job waits in Home.
	Epoch int64 `json:"epoch,omitzero" bound:"count"`
	// Stop ends the job after the iterations in flight.
	Stop bool `json:"stop,omitzero"`
	// Park is where the job rests after the iterations in flight; "": it trains.
	Park Place `json:"park,omitzero"`
	// Copies asks for the time of each copy in the job's reports.
	Copies bool `json:"copies,omitzero"`
	// Trace asks for a trace of what the job does. The zero value asks for nothing.
	Trace Trace `json:"trace,omitzero"`

	// At is, for a replica, the number of complete iterations after which it does what Park or Stop says, or takes a
	// checkpoint if neither is set; 0: there is nothing to do. A replica that has begun more iterations trains on, and
	// its status says so.
	At int `json:"at,omitzero" bound:"sum"`
	// Neighbour is where the replica meets the one before it; nil: unknown yet, or the job is no replica.
	Neighbour *Meeting `json:"neighbour,omitempty"`

	// Unplanned says, for a script, why there is no plan for the Spec's graph and what helps; "": there is a plan, or
	// it is being made.
	Unplanned string `json:"unplanned,omitzero"`
}

// Trace asks an executor to publish all that a job does, command by command, on the job's TraceSubject.
type Trace struct {
	// Number rises with each request; the newest counts. 0: no trace was asked for.
	Number int64 `json:"number,omitzero" bound:"sum"`
	// Iterations is how many iterations are traced, from when the executor hears of the request.
	Iterations int `json:"iterations,omitzero" bound:"count"`
}

// Place is where a parked job has its state.
type Place string

const (
	InMemory Place = "memory" // the state is in Home, in the host memory of the job's executor
	OnDisk   Place = "disk"   // the state is in a checkpoint only, and the job has no executor
)
