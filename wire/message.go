package wire

import (
	"cmp"
	"slices"
	"time"

	"tensile/graph"
	"tensile/graph/cost"
	"tensile/plan"
	"tensile/scheduler/explain"
)

// Message is one of Orders, Status, Result, Report, Layout, Request, Answer, Record, Recorded, Learnt, Settings,
// Tenants, Leadership and Device.
type Message interface {
	kind() string
	check() error
}

// Spec is a job as its owner wants it.
type Spec struct {
	// Name is the name of the job. Jobs of one controller that are not over have different names.
	Name string `json:"name"`
	// ID tells jobs of one name apart. The controller gives it, another to each job; 0 before that.
	ID int64 `json:"id,omitzero" bound:"count"`
	// Model is the name of the network or the file of the graph, as people see it.
	Model string `json:"model"`
	// Graph is the digest of the graph. The object of that name holds its JSON form.
	Graph graph.Digest `json:"graph"`
	// Seed decides the first weights, the dropout masks and the order of examples.
	Seed uint64 `json:"seed" bound:"any"`
	// Iterations is how many iterations complete the job; 0 for a script, which ends by itself.
	Iterations int `json:"iterations" bound:"count"`
	// Priority weighs the job's time against that of other jobs; 0 is 1.
	Priority int `json:"priority,omitzero" bound:"weight"`
	// SwapRate limits the share of the storages that may be swapped, from 0 to 1; 0 is no limit.
	SwapRate float64 `json:"max_swap_rate,omitzero" bound:"part"`
	// Weights is a file of first weights where the executor runs; "": the seed makes all of them.
	Weights string `json:"weights,omitzero"`
	// Source is the ONNX file of the graph where the executor runs, if Weights names another file; else "".
	Source string `json:"source,omitzero"`
	// Data is a folder with examples where the executor runs; "": a synthetic set.
	Data string `json:"data,omitzero"`
	// Save is the file for parameters and optimizer state where the executor runs; "": they are not saved.
	Save string `json:"save,omitzero"`

	// From is the checkpoint with which the job begins, where the executor runs; "": it begins anew.
	From string `json:"from,omitzero"`
	// Checkpoint is the interval between two checkpoints; zero: none are taken.
	Checkpoint Interval `json:"checkpoint,omitzero"`
	// Keep is how many of the newest checkpoints stay on disk; 0 is 2.
	Keep int `json:"keep_checkpoints,omitzero" bound:"count"`
	// Restarts is how many executors the job may lose without progress in between before it fails.
	Restarts int `json:"restarts,omitzero" bound:"count"`
	// AnyDevice lets the job go on at a device that computes other bits than the one where it began.
	AnyDevice bool `json:"any_device,omitzero"`
	// Owner is the user who submitted the job; "": the administrator.
	Owner string `json:"owner,omitzero"`
	// Device is the name of the device on which the job is to train; "": any.
	Device string `json:"device,omitzero"`

	// Replica is the job's place among those that train one network together. It is zero for a job that trains alone.
	Replica Replica `json:"replica,omitzero"`

	// Script says that the job is a program of another framework, which trains in the process that submits it. Such a
	// job ends when that process does, and its Iterations are 0. Its Graph is the one that was recorded last, or a
	// claim.
	Script bool `json:"script,omitzero"`
	// Held is what a script has on the device all the time beside what its graph says, in bytes; 0 for other jobs.
	Held graph.Bytes `json:"held_bytes,omitzero" bound:"storage"`
	// Least is the size in bytes below which no storage of a script moves; 0 for other jobs.
	Least graph.Bytes `json:"least_bytes,omitzero" bound:"storage"`
}

// Paths returns pointers to all fields that name files or folders.
func (s *Spec) Paths() []*string {
	return []*string{&s.Weights, &s.Source, &s.Data, &s.Save, &s.From}
}

// Replica is the place of a job among those that train one network together.
type Replica struct {
	// Number is the replica's own number, from 0.
	Number int `json:"number,omitzero" bound:"count"`
	// Of is how many replicas train together, as the graph says; 0: the job is no replica, and all fields are zero.
	Of int `json:"of,omitzero" bound:"count"`
	// Group is the ID of replica 0. The controller gives it; 0 before that.
	Group int64 `json:"group,omitzero" bound:"count"`
}

// Meeting is where a replica listens for a connection from the next one.
type Meeting struct {
	// Address is an IP address with a TCP port, or a local address that begins with LocalMeeting.
	Address string `json:"address"`
	// Key is a secret made for this meeting. Whoever knows it may be the next replica.
	Key string `json:"key"`
	// Certificate is the SHA-256 digest, in hexadecimal, of the certificate that the listener shows.
	Certificate string `json:"certificate"`
}

// LocalMeeting is the prefix of the address of a meeting on one host: an abstract Unix socket with a random name.
const LocalMeeting = "@tensile-replica-"

// Interval is the time or the number of iterations between two checkpoints. One field is set.
type Interval struct {
	Every      time.Duration `json:"every_ns,omitzero" bound:"span"`
	Iterations int           `json:"iterations,omitzero" bound:"count"`
}

// Checkpoint describes a checkpoint file, from which a job goes on to the same bits.
type Checkpoint struct {
	// Iteration is how many iterations were complete.
	Iteration int `json:"iteration" bound:"count"`
	// File is the name of the file in the executor's folder of checkpoints.
	File string `json:"file"`
	// Host is the name of the machine that the folder is on.
	Host string `json:"host"`
	// Folder is the identity of the folder; "": unknown.
	Folder string `json:"folder,omitzero"`
	// Bytes is the size of the file.
	Bytes graph.Bytes `json:"bytes" bound:"bytes"`
	// Took is how long the file took to write; 0: unknown.
	Took time.Duration `json:"took_ns,omitzero" bound:"took"`
}

// MaxTook bounds Checkpoint.Took. A longer time is reported as MaxTook.
const MaxTook = 24 * time.Hour

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

// Sharing is how the jobs of a device share its memory.
type Sharing string

const (
	NoSharing Sharing = ""          // each job has an arena of its own while it is not in Home
	Gates     Sharing = "gates"     // a lease grants the pages of one group of commands after the other
	Zico      Sharing = "zico"      // like Gates, and Zico's scheduler says when an iteration begins
	Waterwave Sharing = "waterwave" // like Gates, and groups are issued in Waterwave's pairs
	Slices    Sharing = "slices"    // a lease grants whole arenas in time slices, from Home to Home
)

// ParseSharing returns the Sharing of a word. The words shift and pairs are aliases of zico and waterwave. Any other
// word is returned as it is: it may be none of the constants.
func ParseSharing(word string) Sharing {
	switch word {
	case "shift":
		return Zico
	case "pairs":
		return Waterwave
	}
	return Sharing(word)
}

// UnmarshalText implements [encoding.TextUnmarshaler]. It accepts the aliases of ParseSharing, which older messages
// have.
func (s *Sharing) UnmarshalText(text []byte) error {
	*s = ParseSharing(string(text))
	return nil
}

// Method returns the word of the lease's method; "" where the lease grants what its rule allows.
func (s Sharing) Method() string {
	if s == Zico || s == Waterwave {
		return string(s)
	}
	return ""
}

// Gated reports whether a lease grants the pages of one group of commands after the other.
func (s Sharing) Gated() bool { return s == Gates || s.Method() != "" }

func (s Sharing) String() string { return cmp.Or(string(s), "none") }

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

// Result is what a job came to. Statuses and records leave out losses and weights, which may be large. The whole Result
// is stored then, and Stored names it.
type Result struct {
	// Stored names where the losses and weights are: in a Status a key, in a Record an object of Results. "": there are
	// none.
	Stored string `json:"stored,omitzero"`
	// Last is the loss of the last iteration; nil without data.
	Last *Loss `json:"last_loss,omitempty" bound:"any"`
	// Losses are the losses per iteration, NaN for one that was not heard of; nil without data.
	Losses Losses `json:"losses,omitempty" bound:"any"`
	// Weights are the digests of the persistent storages, by their IDs; nil without data.
	Weights map[int32]string `json:"weights,omitempty" bound:"count"`
	// Begin is when the first iteration began: since the Unix epoch, or by the device's clock if that is virtual. So
	// are End, Left and First.
	Begin time.Duration `json:"begin_ns" bound:"sum"`
	// End is when the last iteration ended.
	End time.Duration `json:"end_ns" bound:"sum"`
	// Left is when the job left Home for the first iteration.
	Left time.Duration `json:"left_ns,omitzero" bound:"sum"`
	// First is when the first iteration ended.
	First time.Duration `json:"first_ns,omitzero" bound:"sum"`
	// Stall is for how long compute waited for copies, in all iterations.
	Stall time.Duration `json:"stall_ns" bound:"span"`
	// Gate is for how long compute waited for page grants, in all iterations; 0 without a lease.
	Gate time.Duration `json:"gate_ns,omitzero" bound:"span"`
	// Touched is the highest byte of an arena that a command has used.
	Touched graph.Bytes `json:"touched_bytes" bound:"bytes"`
	// Arena is the largest arena of all plans, in bytes.
	Arena graph.Bytes `json:"arena_bytes" bound:"bytes"`
	// SlotPeak is the highest slot peak of all plans, in bytes.
	SlotPeak graph.Bytes `json:"slot_peak_bytes" bound:"bytes"`
	// Plans is how many plans came into force.
	Plans int `json:"plans" bound:"count"`
	// Transition is the time spent on the way out of Home and back, between iterations of different plans too.
	Transition time.Duration `json:"transition_ns" bound:"span"`
	// Saved is the file that holds the weights where the executor ran; "": they were not saved.
	Saved string `json:"saved,omitzero"`
}

// Report is what was measured of an iteration.
type Report struct {
	// Executor is the executor's name.
	Executor string `json:"executor"`
	// Job is the job's name.
	Job string `json:"job"`
	// ID is that of the job's Spec.
	ID int64 `json:"id,omitzero" bound:"count"`
	// Incarnation is that of the assignment that the executor follows.
	Incarnation int64 `json:"incarnation,omitzero" bound:"count"`
	// Epoch numbers the layout in force.
	Epoch int64 `json:"epoch" bound:"count"`
	// Iteration is the number of the iteration, from 0.
	Iteration int `json:"iteration" bound:"count"`
	// Steps are the latencies of the plan's steps, waits left out.
	Steps []time.Duration `json:"steps_ns" bound:"span"`
	// Stall is for how long compute waited for copies.
	Stall time.Duration `json:"stall_ns" bound:"span"`
	// Gate is for how long compute waited for page grants. It is part of neither Steps nor Stall; 0 without a lease.
	Gate time.Duration `json:"gate_ns,omitzero" bound:"span"`
	// Wall is how long the iteration took.
	Wall time.Duration `json:"wall_ns" bound:"span"`
	// Touched is the highest byte of the arena that a command has used since the plan came into force; 0: unknown.
	Touched graph.Bytes `json:"touched_bytes,omitzero" bound:"bytes"`
	// Loss is the loss of the iteration; nil without data.
	Loss *Loss `json:"loss,omitempty" bound:"any"`
	// Copies are the copies of the iteration in the order of their streams; nil unless the assignment asks for them.
	Copies []Copy `json:"copies,omitempty"`
}

// Copy is what one copy of an iteration took. Times are since the iteration before ended.
type Copy struct {
	// Kind is plan.Out or plan.In.
	Kind plan.MoveKind `json:"kind"`
	// Storage is what was copied.
	Storage graph.StorageID `json:"storage" bound:"count"`
	// After is the step that the copy followed; -1: it followed none.
	After int `json:"after" bound:"step"`
	// Start is when the copy began, counted from the end of the iteration before. So is End.
	Start time.Duration `json:"start_ns" bound:"span"`
	// End is when the copy ended.
	End time.Duration `json:"end_ns" bound:"span"`
	// Stall is for how long compute waited for the copy.
	Stall time.Duration `json:"stall_ns,omitzero" bound:"span"`
}

// Layout is a plan with the offsets that its residencies and scratch have in the arena. Who receives it proves it
// before it runs.
type Layout struct {
	// Plan is the plan; never nil.
	Plan *plan.Plan `json:"plan" bound:"step"`
	// Offsets are the places of the residencies in the arena, in bytes, in the order of plan.StaysOf.
	Offsets []graph.Bytes `json:"offsets" bound:"bytes"`
	// Scratch are the places of the steps' scratch in the arena, in bytes, per step; 0 where a step has none, nil if
	// none has.
	Scratch []graph.Bytes `json:"scratch,omitempty" bound:"bytes"`
	// Arena is the size of the arena in bytes.
	Arena graph.Bytes `json:"arena_bytes" bound:"bytes"`

	// Reasons say why the plan is as it is; nil: its maker did not say.
	Reasons *Reasons `json:"reasons,omitempty"`
}

// Verb is what a command line wants of a controller.
type Verb string

const (
	Submit    Verb = "submit"   // submit Specs, with Graphs
	Stop      Verb = "stop"     // end Job
	Jobs      Verb = "jobs"     // list all jobs and devices
	Park      Verb = "park"     // park Job in Place
	Resume    Verb = "resume"   // resume Job
	SetBudget Verb = "budget"   // set the Budget of a Device
	SetWeight Verb = "priority" // set the Priority of Job
	Forget    Verb = "forget"   // count what Executor may have as free: the caller says that its process has ended
	TraceJob  Verb = "trace"    // trace some Iterations of Job
	Explain   Verb = "explain"  // explain Job or a Storage of it, or plan it with another Priority as well
	SetGraph  Verb = "graph"    // give Job, a script, another Graph, with Held, Least and Graphs
	Drain     Verb = "drain"    // move the jobs of Device away and let it take none, or Undo that
	SetShare  Verb = "share"    // set the Share of Tenant
)

// Request is what a command line asks of a controller.
type Request struct {
	// Verb says what is asked for, and which of the other fields count.
	Verb Verb `json:"verb"`
	// Specs are the jobs to submit. The controller takes all of them or none.
	Specs []Spec `json:"specs,omitempty"`
	// Graphs are those of the Specs, or Graph. One that another job has may be left out.
	Graphs []Packed `json:"graphs,omitempty"`
	// Job is the name of the job that the request is about.
	Job string `json:"job,omitzero"`

	// Place is where Park parks the job.
	Place Place `json:"place,omitzero"`
	// Priority is the new weight for SetWeight, or one that Explain plans with as well.
	Priority int `json:"priority,omitzero" bound:"weight"`
	// Iterations is how many iterations TraceJob traces.
	Iterations int `json:"iterations,omitzero" bound:"count"`
	// Storage is the name of the storage that Explain explains; "": it explains the job.
	Storage string `json:"storage,omitzero"`
	// Executor is the name of the executor that Forget forgets.
	Executor string `json:"executor,omitzero"`
	// Budget is the new budget for SetBudget, in bytes; 0: no limit.
	Budget graph.Bytes `json:"budget_bytes,omitzero" bound:"bytes"`
	// Device names the device whose budget is set, or that is drained; "": that of the controller's process.
	Device string `json:"device,omitzero"`
	// Undo has Drain end a drain.
	Undo bool `json:"undo,omitzero"`
	// Tenant is the user whose share is set.
	Tenant string `json:"tenant,omitzero"`
	// Share is the new share; 0: that of a user who was given none.
	Share int `json:"share,omitzero" bound:"share"`

	// Graph is a script's new graph. So are Held and Least, see Spec.
	Graph graph.Digest `json:"graph,omitzero"`
	Held  graph.Bytes  `json:"held_bytes,omitzero" bound:"storage"`
	Least graph.Bytes  `json:"least_bytes,omitzero" bound:"storage"`
}

// Answer is the answer to a request: an error in one line, or what was asked for.
type Answer struct {
	// Error says in one line why the request was refused; "": it was not, and the other fields count.
	Error string `json:"error,omitzero"`
	// Jobs are the jobs that were submitted or stopped, or all jobs for the verb Jobs.
	Jobs []Record `json:"jobs,omitempty"`
	// Trouble says in one line what keeps the controller from going on; "": nothing does.
	Trouble string `json:"trouble,omitzero"`

	// Device is, for Jobs, the identity of the device of the controller's process.
	Device string `json:"device,omitzero"`
	// Budget is the budget of that device in bytes; 0: no limit.
	Budget graph.Bytes `json:"budget_bytes,omitzero" bound:"bytes"`
	// Link are the rates of that device's link, which all its jobs share.
	Link Rates `json:"link,omitzero"`
	// Sharing is, for Jobs, how jobs share the memory of that device.
	Sharing Sharing `json:"memory_sharing,omitzero"`
	// Contexts are, for Jobs, what processes take of the budget by opening the device.
	Contexts Contexts `json:"contexts,omitzero"`
	// HostMemory limits, for Jobs, what all jobs have on the host, in bytes; 0: no limit.
	HostMemory graph.Bytes `json:"host_memory_bytes,omitzero" bound:"bytes"`
	// ByHand says, for Jobs, that executors take jobs that the controller has not started, perhaps on other machines.
	ByHand bool `json:"by_hand,omitzero"`

	// Explained answers Explain without a storage; nil for other requests.
	Explained *explain.Job `json:"explained,omitempty" bound:"signed"`
	// Storage answers Explain with a storage; nil for other requests.
	Storage *explain.Storage `json:"storage,omitempty" bound:"signed"`
	// Devices are, for Jobs, the controller's own device first, then the others by name.
	Devices []DeviceState `json:"devices,omitempty"`
	// Tenants are, for Jobs, the tenants by name; nil where nobody was given a share.
	Tenants []TenantState `json:"tenants,omitempty"`
	// Credentials are, for a Submit of a script, what the executor connects with that the record names; else "".
	Credentials string `json:"credentials,omitzero"`
}

// Holding is memory that an incarnation of a job may still have at an executor out of reach.
type Holding struct {
	// Executor is the name of the executor.
	Executor string `json:"executor"`
	// Life names its process; "": unknown.
	Life string `json:"life,omitzero"`
	// ID is that of the job's Spec.
	ID int64 `json:"id,omitzero" bound:"count"`
	// Incarnation is the one that may still have the memory.
	Incarnation int64 `json:"incarnation" bound:"count"`
	// Bytes is how much it may have of the device.
	Bytes graph.Bytes `json:"bytes" bound:"sum"`
	// Host is how much it may have of the host's memory, in bytes.
	Host graph.Bytes `json:"host_bytes,omitzero" bound:"sum"`
	// On is the name of the device; "": that of the controller's process.
	On string `json:"on,omitzero"`
}

// JobState is where a job is in its life at the controller. The constants are called as their strings are.
type JobState string

const (
	JobQueued   JobState = "queued"   // the job waits for memory, or for an executor
	JobStarting JobState = "starting" // the job has an executor and a plan, and waits for both to be ready
	JobRunning  JobState = "running"  // the job trains
	JobUnknown  JobState = "unknown"  // the job's executor is out of reach, and may be training
	JobParking  JobState = "parking"  // the job was told to park
	JobParked   JobState = "parked"   // the job rests where Record.Park says
	JobStopping JobState = "stopping" // the job was told to end
	JobFinished JobState = "finished" // all iterations are complete
	JobStopped  JobState = "stopped"  // the job ended because somebody asked for it
	JobFailed   JobState = "failed"   // the job ended because of an error
)

// Over reports whether the job will never run again.
func (p JobState) Over() bool { return p == JobFinished || p == JobStopped || p == JobFailed }

// Record is what a controller stores about a job and reads again after a restart.
type Record struct {
	// Spec is the job as it was submitted, with its ID.
	Spec Spec `json:"spec"`
	// Order numbers the jobs in the order of their submission.
	Order int64 `json:"order" bound:"count"`
	// State is where the job is.
	State JobState `json:"phase"`
	// Reason says in one line what a job waits for that is queued, starting, unknown, parked or on its way to another
	// device, or why it failed, and "" where there is nothing to say.
	Reason string `json:"why,omitzero"`
	// Diverged says, for a failed job, that its loss or a weight is no finite number.
	Diverged bool `json:"diverged,omitzero"`
	// Need is how many bytes of device memory a queued job waits for; 0: it waits for something else, or not at all.
	Need graph.Bytes `json:"need_bytes,omitzero" bound:"sum"`
	// Executor is the name of the executor that has the job; "": none has, as while it is queued or parked on disk.
	Executor string `json:"executor,omitzero"`
	// Executors are the names of the executors that have had the job, the newest last, maxExecutors at most. They may
	// write to its log. "*" stands for executors that are not known by name.
	Executors []string `json:"executors,omitempty"`
	// On is the name of the device that the job is planned for on; "": that of the controller's process.
	On string `json:"on,omitzero"`
	// Incarnation is that of the newest assignment. It rises each time that the job gets an executor; 0: it never had
	// one.
	Incarnation int64 `json:"starts,omitzero" bound:"count"`
	// Restarts is how many executors the job has lost since its newest checkpoint.
	Restarts int `json:"restarts,omitzero" bound:"sum"`
	// From is how many iterations the checkpoint has with which this incarnation begins; for a replica, the newest that
	// all replicas have. 0: it begins anew.
	From int `json:"from,omitzero" bound:"count"`
	// At is, for a replica, the iteration after which it parks, stops or takes a checkpoint, see Assignment.At; else 0.
	At int `json:"at,omitzero" bound:"sum"`
	// Checkpoint is the newest one that was heard of; nil: none.
	Checkpoint *Checkpoint `json:"checkpoint,omitempty"`
	// Park is where the job is parked, or is to be while its state is parking; "": it is to train.
	Park Place `json:"park,omitzero"`
	// Preempted says that the job was parked for the sake of another, and resumes when there is room.
	Preempted bool `json:"preempted,omitzero"`
	// Target is the name of the device to which a job migrates once it has left its own; "": it does not migrate.
	Target string `json:"target,omitzero"`
	// Held is the memory that older incarnations of the job may still have at executors out of reach.
	Held []Holding `json:"held,omitempty"`

	// Waiting is when the job was queued last, since the Unix epoch.
	Waiting time.Duration `json:"waiting_ns,omitzero" bound:"sum"`
	// Epoch numbers the newest layout; 0: there is none yet.
	Epoch int64 `json:"epoch,omitzero" bound:"count"`
	// Cleared numbers the newest layout that is over; all before it are over too. 0: none is.
	Cleared int64 `json:"cleared_epoch,omitzero" bound:"count"`
	// Granted numbers the layout that the executor was told to train with; 0: none.
	Granted int64 `json:"granted_epoch,omitzero" bound:"count"`
	// Applied numbers the layout that the job was last heard to train with; 0: none since it got its executor.
	Applied int64 `json:"applied_epoch,omitzero" bound:"count"`
	// Claim is the most device memory that the job may have now, in bytes: the larger of its old and its new arena.
	Claim graph.Bytes `json:"claim_bytes,omitzero" bound:"sum"`
	// Base is the part of Claim that the job has while it is not in Home, in bytes, where Sharing shares the rest; else
	// 0.
	Base graph.Bytes `json:"base_bytes,omitzero" bound:"sum"`
	// Sharing is how the job shares memory with others. NoSharing: all of Claim counts, all the time.
	Sharing Sharing `json:"memory_sharing,omitzero"`
	// Speed is how fast the newest plan is expected to be beside the other jobs, as a share of the speed alone; 0:
	// unknown.
	Speed float64 `json:"expected_speed,omitzero" bound:"ratio"`
	// Slowdown is how many times as long as alone an iteration of the newest plan is predicted to take beside the other
	// jobs; 0: unknown, as always with one device.
	Slowdown float64 `json:"slowdown,omitzero" bound:"ratio"`
	// Measured is Pace as a multiple of what the ops of an iteration take alone and without a plan, as they were
	// measured; 0: no iteration was reported. It is set in an Answer alone.
	Measured float64 `json:"measured_slowdown,omitzero" bound:"ratio"`
	// Host is how much host memory the job counts with, in bytes.
	Host graph.Bytes `json:"host_bytes,omitzero" bound:"sum"`
	// Arena is the arena of the layout that the job was last heard to train with, in bytes; 0: it has none.
	Arena graph.Bytes `json:"arena_bytes,omitzero" bound:"bytes"`
	// SlotPeak is the slot peak of that layout, in bytes.
	SlotPeak graph.Bytes `json:"slot_peak_bytes,omitzero" bound:"bytes"`
	// Plans is how many layouts the job was heard to train with.
	Plans int `json:"plans,omitzero" bound:"count"`
	// Link is the job's share of the link, in bytes a second; zero where the link is not limited.
	Link Rates `json:"link,omitzero"`
	// Iteration is how many iterations are complete.
	Iteration int `json:"iteration" bound:"sum"`
	// PlansMade is how many plans were made for the job.
	PlansMade int `json:"replans,omitzero" bound:"count"`
	// Device is the identity of the device that the newest layout is for; "": there is no layout yet.
	Device string `json:"device,omitzero"`
	// Budget is the budget of all jobs together when the job was last planned for, in bytes; 0: no limit.
	Budget graph.Bytes `json:"budget_bytes,omitzero" bound:"sum"`
	// Latencies says what the newest layout was planned with: "cold-start" for predicted, "updated" for measured
	// latencies.
	Latencies string `json:"latencies,omitzero"`
	// PlanReason says why the newest plan was made; "": there is none.
	PlanReason string `json:"replan_reason,omitzero"`
	// Result is what a job that is over came to; nil before that, and for one that never ran.
	Result *Result `json:"result,omitempty"`
	// Script is what a script has of the device; nil: the job is no script, or has not told yet.
	Script *Allocated `json:"script,omitempty"`
	// Unplanned says, for a script, why there is no plan for its newest graph and what helps. It trains without a plan
	// then; "": it has one, or will.
	Unplanned string `json:"unplanned,omitzero"`

	// Submitted is when the job was submitted, since the Unix epoch; 0: unknown.
	Submitted time.Duration `json:"submitted_ns,omitzero" bound:"sum"`
	// Pace is the time of an iteration, as a moving average; 0: no iteration was reported. It is set in an Answer
	// alone.
	Pace time.Duration `json:"pace_ns,omitzero" bound:"span"`
	// Gate is the part of Pace for which the job waits for page grants; 0 without a lease. It is set in an Answer
	// alone.
	Gate time.Duration `json:"gate_ns,omitzero" bound:"span"`
	// Loss is the loss of the last iteration; nil: unknown. It is set in an Answer alone.
	Loss *Loss `json:"loss,omitempty" bound:"any"`
}

// Packed is a graph in a request.
type Packed struct {
	// Graph is the graph's JSON form, compressed by gzip.
	Graph []byte `json:"graph" bound:"any"`
	// Latency is how long each op took as a script's graph was recorded; nil for other graphs.
	Latency []time.Duration `json:"latency_ns,omitempty" bound:"latency"`
}

// Recorded are the latencies of a script's graph as it was recorded. They are beside the graph: another recording of
// the same has others.
type Recorded struct {
	// Latency is how long each op took.
	Latency []time.Duration `json:"latency_ns" bound:"latency"`
}

// maxExecutors limits Record.Executors.
const maxExecutors = 100

// SetExecutor sets the executor of the job's newest incarnation.
func (r *Record) SetExecutor(executor string) {
	if len(r.Executors) == 0 && r.Incarnation > 1 {
		r.Executors = []string{"*"}
	}
	r.Executor = executor
	if slices.Contains(r.Executors, executor) {
		return
	}
	r.Executors = append(slices.Clone(r.Executors), executor)
	r.Executors = r.Executors[max(0, len(r.Executors)-maxExecutors):]
}

// MayLog reports whether a log, by its name, is one that an executor of the job writes: others can write nothing that
// is taken for the job's.
func (r *Record) MayLog(log string) bool {
	return slices.ContainsFunc(r.Executors, func(executor string) bool {
		return LogSubject(executor, r.Spec.Name) == log
	})
}

// Epochs returns the first and the last epoch of the layouts that may be in force or come into force.
func (r *Record) Epochs() (first, last int64) { return max(r.Applied, r.Cleared+1), r.Granted }

// Hides reports whether a command that names both a job and, together, some replicas means the latter, of which this is
// the first: a job that runs or waits hides one that is over, and of two that are over the one that came last.
func (r *Record) Hides(job *Record) bool {
	return job.State.Over() && (!r.State.Over() || r.Order > job.Order)
}

// Settings are what an administrator has set while a controller ran. A controller finds them again after a restart.
type Settings struct {
	// Device is the identity of the device.
	Device string `json:"device"`
	// Budget is the memory for the arenas of all jobs together, in bytes; 0: no limit.
	Budget graph.Bytes `json:"budget_bytes" bound:"bytes"`
}

// Tenants are the shares that an administrator has given to users, and what devices owe these. A controller finds them
// again after a restart.
type Tenants struct {
	// Shares are the shares by user, from 1 to MaxShare.
	Shares map[string]int `json:"shares" bound:"share"`
	// Debts are what devices owed the tenants not long ago.
	Debts []TenantDebt `json:"debts,omitempty"`
}

// TenantDebt is what a device owes a tenant.
type TenantDebt struct {
	// Device is the name of the device; "": that of the controller's process.
	Device string `json:"device,omitzero"`
	// Tenant is the user; "": the administrator.
	Tenant string `json:"tenant,omitzero"`
	// Debt is by how much device time the tenant got less than its share; below 0: by how much more.
	Debt time.Duration `json:"debt_ns" bound:"signed"`
}

// MaxShare is the largest share of a tenant.
const MaxShare = 1000

// TenantState is what a tenant has and gets.
type TenantState struct {
	// Name is the user; "": the administrator.
	Name string `json:"name,omitzero"`
	// Share is the tenant's share, from 1 to MaxShare.
	Share int `json:"share" bound:"share"`
	// Running is how many of its jobs run.
	Running int `json:"running" bound:"count"`
	// Waiting is how many of its jobs are queued.
	Waiting int `json:"waiting" bound:"count"`
	// Speed is the measured speed of its jobs together; 1 is one job alone on a device.
	Speed float64 `json:"speed" bound:"ratio"`
	// Behind is by how much its jobs have done less than its share, on the device where that is most, counted in what
	// the same takes alone; below 0: by how much more.
	Behind time.Duration `json:"behind_ns,omitzero" bound:"signed"`
	// Served is what its iterations since the start of the controller take alone.
	Served time.Duration `json:"served_ns" bound:"sum"`
}

// Learnt is what ops have taken on a device, whatever job they were in. A controller finds it again after a restart.
type Learnt struct {
	// Device is the identity of the device.
	Device string `json:"device"`
	// Ops are at most MaxLearnt signatures; those that were heard of last come last.
	Ops []LearntOp `json:"ops"`
}

// LearntOp is what ops of one signature have taken.
type LearntOp struct {
	// Signature says which ops these are.
	Signature graph.Signature `json:"signature"`
	// Latency is a moving average of what they took.
	Latency time.Duration `json:"latency_ns" bound:"latency"`
	// Reports is how many reports the average is of.
	Reports int `json:"reports" bound:"count"`
}

// MaxLearnt is the number of signatures whose latencies are kept: those of some thirty networks.
const MaxLearnt = 4096

// Leadership says which of the controllers with one state leads. The leader stores it again and again; others take over
// when it has not changed for a while.
type Leadership struct {
	// ID names the candidate, another at each start; "": the last leader has resigned.
	ID string `json:"id,omitzero"`
	// Where names host and process of the candidate.
	Where string `json:"where"`
	// Term numbers the leaders, from 1.
	Term int64 `json:"term" bound:"count"`
	// Beat rises each time that the leader stores this.
	Beat int64 `json:"beat" bound:"count"`
	// Lease names the lease of the device's memory. It is the same in every term.
	Lease string `json:"lease"`
}
