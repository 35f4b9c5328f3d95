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
	Name string `json:"name"`
	// given by the controller: another for each job that is called so
	ID         int64        `json:"id,omitzero" bound:"count"`
	Model      string       `json:"model"`
	Graph      graph.Digest `json:"graph"`            // the object of that name is its JSON form
	Seed       uint64       `json:"seed" bound:"any"` // of weights, dropout and the order of examples
	Iterations int          `json:"iterations" bound:"count"`
	Priority   int          `json:"priority,omitzero" bound:"weight"` // weighs the job's time: 0 is 1
	// share of the storages that may be swapped; 0: no limit
	SwapRate float64 `json:"max_swap_rate,omitzero" bound:"part"`
	// folder with examples where the executor runs; "": a synthetic set
	Weights string `json:"weights,omitzero"` // file of first weights, where the executor runs; "": all are made up
	Source  string `json:"source,omitzero"`  // ONNX file of the graph, where the executor runs, if Weights is another
	Data    string `json:"data,omitzero"`
	Save    string `json:"save,omitzero"` // file for parameters and state, where the executor runs

	// checkpoint to begin with, at the executor; "": none
	From       string   `json:"from,omitzero"`
	Checkpoint Interval `json:"checkpoint,omitzero"`                     // between checkpoints; zero: none are taken
	Keep       int      `json:"keep_checkpoints,omitzero" bound:"count"` // so many of the newest stay; 0 is 2
	// of executors that were lost without progress in between
	Restarts  int    `json:"restarts,omitzero" bound:"count"`
	AnyDevice bool   `json:"any_device,omitzero"` // it may go on where other bits come out
	Owner     string `json:"owner,omitzero"`      // who submitted it; "": the administrator
	// name of the device on which it is to train; "": any
	Device string `json:"device,omitzero"`

	Replica Replica `json:"replica,omitzero"` // of a graph that reduces gradients: which one it is

	// Script says that the job is one of another framework, which trains in the process that submits it: it ends when
	// that does, and Iterations is 0. The graph is the one that was recorded last, or a claim.
	Script bool `json:"script,omitzero"`
	// of a script: on the device all the time, beside the graph
	Held  graph.Bytes `json:"held_bytes,omitzero" bound:"storage"`
	Least graph.Bytes `json:"least_bytes,omitzero" bound:"storage"` // of a script: no smaller storage moves
}

// Paths are all of the Spec that name files or folders, as they may be changed.
func (s *Spec) Paths() []*string {
	return []*string{&s.Weights, &s.Source, &s.Data, &s.Save, &s.From}
}

// Replica is the place of a job among those that train one network together.
type Replica struct {
	Number int `json:"number,omitzero" bound:"count"` // from 0
	// so many train together, as the graph says; 0: the job is no replica
	Of    int   `json:"of,omitzero" bound:"count"`
	Group int64 `json:"group,omitzero" bound:"count"` // given by the controller: the ID of replica 0
}

// Meeting is where a replica waits for the connection of the next one. Whoever knows the key may be that.
type Meeting struct {
	Address     string `json:"address"`     // IP address and TCP port, or one that begins with LocalMeeting
	Key         string `json:"key"`         // made for this meeting
	Certificate string `json:"certificate"` // SHA-256 of the certificate that it shows, in hexadecimal
}

// LocalMeeting begins the address of a meeting on one host: the abstract one of a Unix socket, with a random name.
const LocalMeeting = "@tensile-replica-"

// Interval is the time or the iterations between two checkpoints; one of them is set.
type Interval struct {
	Every      time.Duration `json:"every_ns,omitzero" bound:"span"`
	Iterations int           `json:"iterations,omitzero" bound:"count"`
}

// Checkpoint is one that was written: all that the rest of a job follows from.
type Checkpoint struct {
	Iteration int           `json:"iteration" bound:"count"` // complete iterations
	File      string        `json:"file"`                    // in the executor's folder of checkpoints
	Host      string        `json:"host"`                    // that this folder is on
	Folder    string        `json:"folder,omitzero"`         // its identity; "": it is not known
	Bytes     graph.Bytes   `json:"bytes" bound:"bytes"`
	Took      time.Duration `json:"took_ns,omitzero" bound:"took"` // to be written; 0: it is not known
}

// MaxTook bounds Checkpoint.Took: what took longer is said to have taken that.
const MaxTook = 24 * time.Hour

// Orders are all that a controller wants of an executor.
type Orders struct {
	Executor string `json:"executor"`
	// the device that it has brought; "": it has that of the controller
	On     string `json:"on,omitzero"`
	Number int64  `json:"number" bound:"count"` // the larger is the newer, over restarts of the controller too
	// those that are not named are to end at once, and to be forgotten
	Jobs  []Assignment `json:"jobs"`
	Leave bool         `json:"leave,omitzero"`
	// IDs of jobs that it had, and that go on elsewhere from their checkpoints: these are to stay
	Elsewhere []int64 `json:"elsewhere,omitempty" bound:"count"`
	Life      string  `json:"life,omitzero"` // if set, they are for no other process of that name
	Link      Rates   `json:"link,omitzero"` // of all its jobs together

	Refused *Refusal `json:"refused,omitempty"` // a process of that name that is to end
	Lease   *Lease   `json:"lease,omitempty"`   // nil: each job has its arena for itself
}

// Lease is how the jobs of an executor get memory of its device, beside those of other executors there.
type Lease struct {
	Sharing Sharing `json:"memory_sharing"`
	// for all jobs of the device together; 0: no limit
	Capacity graph.Bytes `json:"capacity_bytes,omitzero" bound:"sum"`
	// of the capacity: the larger is the newer, whichever executor hears of it, over restarts of the controller too
	Number int64 `json:"number" bound:"sum"`
	// that it has at every host; "": the executor chooses
	Name string      `json:"name,omitzero"`
	Page graph.Bytes `json:"page_bytes,omitzero" bound:"storage"` // of the device; 0: it has none
}

// Refusal tells a process that it is not wanted: another of its name runs, or its device is another.
type Refusal struct {
	Life string `json:"life"` // of the process
	Why  string `json:"why"`  // in one line
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

// UnmarshalText implements [encoding.TextUnmarshaler]. It accepts the aliases of ParseSharing, which older messages have.
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

// Assignment is what a job is to do.
type Assignment struct {
	Spec        Spec  `json:"spec"`
	Incarnation int64 `json:"incarnation,omitzero" bound:"count"` // it rises each time that the job gets an executor
	// iterations of the newest checkpoint that is known; 0: none is
	From int `json:"from,omitzero" bound:"count"`
	// of the layout to train with; 0: none yet, the job waits in Home
	Epoch  int64 `json:"epoch,omitzero" bound:"count"`
	Stop   bool  `json:"stop,omitzero"`   // to end after the iterations in flight
	Park   Place `json:"park,omitzero"`   // to rest after these, there; "": to train
	Copies bool  `json:"copies,omitzero"` // its reports are to say what each copy took
	Trace  Trace `json:"trace,omitzero"`  // what it does is to be told

	// Of a replica. From is exact then: it begins with its checkpoint after so many iterations, whatever newer ones
	// there are, and no checkpoint from there on is removed to keep few.
	//
	// At is the number of complete iterations after which it does what Park or Stop says, or without these takes a
	// checkpoint; 0: there is nothing to do. One that has begun more iterations trains on, and its status says so.
	At        int      `json:"at,omitzero" bound:"sum"`
	Neighbour *Meeting `json:"neighbour,omitempty"` // with the replica before it; nil: it is not known yet

	// of a script: why there is no plan for the Spec's graph, and what helps; "": there is one, or it is being made
	Unplanned string `json:"unplanned,omitzero"`
}

// Trace asks for all that a job does, command by command, on its TraceSubject.
type Trace struct {
	Number     int64 `json:"number,omitzero" bound:"sum"`       // the newest counts; 0: none is wanted
	Iterations int   `json:"iterations,omitzero" bound:"count"` // so many, from when it is heard of
}

// Place is where a parked job has its state.
type Place string

const (
	InMemory Place = "memory" // in Home, at its executor
	OnDisk   Place = "disk"   // in a checkpoint alone: it has no executor
)

// Status is all that an executor does.
type Status struct {
	Executor string `json:"executor"`
	Number   int64  `json:"number" bound:"count"` // the larger is the newer, within a life
	Life     string `json:"life"`                 // another for each process that was called so
	Device   string `json:"device"`
	Host     string `json:"host,omitzero"` // where it runs: the machine's name
	// identity of its folder of checkpoints; "": it is not known
	Folder string   `json:"folder,omitzero"`
	Place  string   `json:"place,omitzero"`                // of the leases that it may share; "": it shares none
	Since  int64    `json:"since_ns,omitzero" bound:"sum"` // when the process started: since the Unix epoch
	Orders int64    `json:"orders" bound:"count"`          // the number of the newest orders it has seen
	Dead   []string `json:"dead,omitempty"`                // lives of that name that are known to have ended
	// it was interrupted: it takes no job any more, and ends
	Leaves bool        `json:"leaves,omitzero"`
	Brings *Device     `json:"brings,omitempty"` // its device; nil: that of the controller
	Jobs   []JobStatus `json:"jobs"`
}

// JobStatus is where a job of an executor is.
type JobStatus struct {
	Name        string      `json:"name"`
	ID          int64       `json:"id,omitzero" bound:"count"`          // of the spec
	Incarnation int64       `json:"incarnation,omitzero" bound:"count"` // of the assignment
	State       State       `json:"state"`
	Epoch       int64       `json:"epoch" bound:"count"`       // of the layout in force; 0: none yet
	Arena       graph.Bytes `json:"arena_bytes" bound:"bytes"` // what the job has of the device now
	Iteration   int         `json:"iteration" bound:"count"`   // complete iterations
	Checkpoint  *Checkpoint `json:"checkpoint,omitempty"`      // the newest
	// of a replica
	Begun int `json:"begun,omitzero" bound:"count"` // iterations that the device was given, the complete ones included
	// after how many iterations the first checkpoint was taken of those, one every Interval.Iterations without a gap,
	// of which Checkpoint is the last; 0: the one before that is missing, or older than what the job began with
	Since int      `json:"since,omitzero" bound:"count"`
	Meets *Meeting `json:"meets,omitempty"` // with the next replica; nil: it is the last one, or waits for no other yet
	// it has failed only because a connection to another replica broke: from a checkpoint that all have it can go on
	Alone bool   `json:"alone,omitzero"`
	Error string `json:"error,omitzero"`
	Lacks bool   `json:"lacks,omitzero"` // it has failed: its newest checkpoint is elsewhere
	// a replica has failed: the checkpoint with which all were to begin is damaged
	Damaged bool `json:"damaged,omitzero"`
	// it has failed: its loss, or what it has learned, is no finite number
	Diverged bool `json:"diverged,omitzero"`
	// it has failed: the device has no room for its arena now, but for so many bytes; nil: that was not the reason
	Free   *graph.Bytes `json:"free_bytes,omitempty" bound:"bytes"`
	Result *Result      `json:"result,omitempty"` // of a job that is over; its losses and weights are stored
	Script *Allocated   `json:"script,omitempty"` // of a script that has said something of it
}

// Allocated is what the allocator of a script has of the device, as the script measures it.
type Allocated struct {
	// of the plan in force, with what is held beside it; 0: there is none
	Plan    graph.Bytes `json:"plan_bytes" bound:"bytes"`
	Reserve graph.Bytes `json:"reserve_bytes" bound:"bytes"` // beyond plans, at most: it counts with the claim
	Touched graph.Bytes `json:"touched_bytes" bound:"bytes"` // the most in the newest iteration
}

// State is where a job is in its life at an executor.
type State string

const (
	Waiting  State = "waiting" // in Home, for its first layout, or for its arena after a rest
	Running  State = "running"
	Resting  State = "resting" // in Home, parked in memory
	Finished State = "finished"
	Stopped  State = "stopped"
	Failed   State = "failed"
	// it has left this executor, parked on disk or because the process was told to end, and can go on elsewhere from
	// its checkpoint
	Suspended State = "suspended"
)

// Over reports whether the job has nothing of the device any more, and never will.
func (s State) Over() bool { return s == Finished || s == Stopped || s == Failed || s == Suspended }

// Result is what a job came to. Losses and weights, which may be many, are left out of statuses and records: all of it
// is stored then, and Stored names it.
type Result struct {
	// in a Status a key, in a Record an object of Results; "": there is no more
	Stored string `json:"stored,omitzero"`
	Last   *Loss  `json:"last_loss,omitempty" bound:"any"` // of the last iteration; nil without data
	// per iteration; none without data, NaN for one that was not heard of
	Losses  Losses           `json:"losses,omitempty" bound:"any"`
	Weights map[int32]string `json:"weights,omitempty" bound:"count"` // per persistent storage a digest of its bytes
	// of the first iteration: since the Unix epoch, or by the device's clock if that is virtual
	Begin      time.Duration `json:"begin_ns" bound:"sum"`
	End        time.Duration `json:"end_ns" bound:"sum"`            // of the last
	Left       time.Duration `json:"left_ns,omitzero" bound:"sum"`  // when the job left Home for the first iteration
	First      time.Duration `json:"first_ns,omitzero" bound:"sum"` // when that ended
	Stall      time.Duration `json:"stall_ns" bound:"span"`
	Gate       time.Duration `json:"gate_ns,omitzero" bound:"span"` // waits for the lease
	Touched    graph.Bytes   `json:"touched_bytes" bound:"bytes"`
	Arena      graph.Bytes   `json:"arena_bytes" bound:"bytes"`     // the largest of all plans
	SlotPeak   graph.Bytes   `json:"slot_peak_bytes" bound:"bytes"` // the highest
	Plans      int           `json:"plans" bound:"count"`
	Transition time.Duration `json:"transition_ns" bound:"span"`
	Saved      string        `json:"saved,omitzero"` // the file that holds its weights, where the executor ran
}

// Report is what was measured of an iteration.
type Report struct {
	Executor    string          `json:"executor"`
	Job         string          `json:"job"`
	ID          int64           `json:"id,omitzero" bound:"count"` // of its spec
	Incarnation int64           `json:"incarnation,omitzero" bound:"count"`
	Epoch       int64           `json:"epoch" bound:"count"`
	Iteration   int             `json:"iteration" bound:"count"`
	Steps       []time.Duration `json:"steps_ns" bound:"span"` // per step of the plan, waits left out
	Stall       time.Duration   `json:"stall_ns" bound:"span"`
	// waits for the lease: part of neither steps nor stall
	Gate time.Duration `json:"gate_ns,omitzero" bound:"span"`
	Wall time.Duration `json:"wall_ns" bound:"span"`
	// the highest byte of the arena that a command has used since the plan came into force; 0: it is not known
	Touched graph.Bytes `json:"touched_bytes,omitzero" bound:"bytes"`
	Loss    *Loss       `json:"loss,omitempty" bound:"any"`
	Copies  []Copy      `json:"copies,omitempty"` // in the order of their streams; only if they were ordered
}

// Copy is what one copy of an iteration took. Times are since the iteration before ended.
type Copy struct {
	Kind    plan.MoveKind   `json:"kind"` // Out or In
	Storage graph.StorageID `json:"storage" bound:"count"`
	After   int             `json:"after" bound:"step"` // the step that it followed; -1: none
	Start   time.Duration   `json:"start_ns" bound:"span"`
	End     time.Duration   `json:"end_ns" bound:"span"`
	Stall   time.Duration   `json:"stall_ns,omitzero" bound:"span"` // how long the job stood still for it
}

// Layout is a plan with the offsets that its residencies and scratch have in the arena. Who receives it proves it
// before it runs.
type Layout struct {
	Plan    *plan.Plan    `json:"plan" bound:"step"`
	Offsets []graph.Bytes `json:"offsets" bound:"bytes"`           // per residency, as plan.StaysOf lists them
	Scratch []graph.Bytes `json:"scratch,omitempty" bound:"bytes"` // per step; 0 where it has none
	Arena   graph.Bytes   `json:"arena_bytes" bound:"bytes"`

	Reasons *Reasons `json:"reasons,omitempty"` // nil: a controller of the release before has made it
}

// Verb is what a command line wants of a controller.
type Verb string

const (
	Submit    Verb = "submit" // Specs, with Graphs
	Stop      Verb = "stop"   // Job
	Jobs      Verb = "jobs"
	Park      Verb = "park"     // Job, to Place
	Resume    Verb = "resume"   // Job
	SetBudget Verb = "budget"   // Budget
	SetWeight Verb = "priority" // Job, Priority
	Forget    Verb = "forget"   // Executor: its process has ended, whoever asks says
	TraceJob  Verb = "trace"    // Job, Iterations
	Explain   Verb = "explain"  // Job; Storage, or Priority for one plan more
	SetGraph  Verb = "graph"    // Job, a script's: to Graph, with Held, Least and Graphs
	Drain     Verb = "drain"    // Device, by its name: it takes no jobs, and those that it has leave; or Undo of that
	SetShare  Verb = "share"    // Tenant, Share
)

// Request is what a command line asks of a controller.
type Request struct {
	Verb  Verb   `json:"verb"`
	Specs []Spec `json:"specs,omitempty"` // all are taken, or none
	// those of the Specs, or Graph; one that another job has may be left out
	Graphs []Packed `json:"graphs,omitempty"`
	Job    string   `json:"job,omitzero"`

	Place      Place       `json:"place,omitzero"`
	Priority   int         `json:"priority,omitzero" bound:"weight"`
	Iterations int         `json:"iterations,omitzero" bound:"count"`
	Storage    string      `json:"storage,omitzero"`
	Executor   string      `json:"executor,omitzero"`
	Budget     graph.Bytes `json:"budget_bytes,omitzero" bound:"bytes"`
	Device     string      `json:"device,omitzero"` // for a Budget: of whose memory; "": the controller's
	Undo       bool        `json:"undo,omitzero"`
	Tenant     string      `json:"tenant,omitzero"`
	Share      int         `json:"share,omitzero" bound:"share"` // 0: that of a tenant who was given none

	Graph graph.Digest `json:"graph,omitzero"`
	Held  graph.Bytes  `json:"held_bytes,omitzero" bound:"storage"`
	Least graph.Bytes  `json:"least_bytes,omitzero" bound:"storage"`
}

// Answer is what comes of a request: an error in one line, or what was asked for.
type Answer struct {
	Error   string   `json:"error,omitzero"`
	Jobs    []Record `json:"jobs,omitempty"`   // of the jobs submitted or stopped; of all for Jobs
	Trouble string   `json:"trouble,omitzero"` // that the controller has, in one line: why nothing goes on

	Device string      `json:"device,omitzero"`                     // for Jobs: what is planned for
	Budget graph.Bytes `json:"budget_bytes,omitzero" bound:"bytes"` // 0: no limit
	Link   Rates       `json:"link,omitzero"`                       // of the device, that all jobs share
	// for Jobs: how jobs share the memory of the device
	Sharing Sharing `json:"memory_sharing,omitzero"`
	// for Jobs: what processes take of the budget by having the device open
	Contexts Contexts `json:"contexts,omitzero"`
	// for Jobs: for what all jobs have on the host; 0: no limit
	HostMemory graph.Bytes `json:"host_memory_bytes,omitzero" bound:"bytes"`
	// for Jobs: executors that were not started by the controller take jobs, perhaps on other machines
	ByHand bool `json:"by_hand,omitzero"`

	Explained *explain.Job     `json:"explained,omitempty" bound:"signed"` // for Explain without a storage
	Storage   *explain.Storage `json:"storage,omitempty" bound:"signed"`   // for Explain with one
	// for Jobs: the controller's own first, the others by name
	Devices []DeviceState `json:"devices,omitempty"`
	// for Jobs: by name; none where nobody was given a share
	Tenants []TenantState `json:"tenants,omitempty"`
	// for a Submit of a script: with what its executor, which is named in the record, connects
	Credentials string `json:"credentials,omitzero"`
}

// Holding is memory of an incarnation of a job whose executor cannot be reached, and may have it still.
type Holding struct {
	Executor    string      `json:"executor"`
	Life        string      `json:"life,omitzero"`             // of its process
	ID          int64       `json:"id,omitzero" bound:"count"` // of the job's spec
	Incarnation int64       `json:"incarnation" bound:"count"`
	Bytes       graph.Bytes `json:"bytes" bound:"sum"`
	Host        graph.Bytes `json:"host_bytes,omitzero" bound:"sum"`
	On          string      `json:"on,omitzero"` // name of the device; "": the controller's own
}

// JobState is where a job is in its life at the controller.
type JobState string

const (
	Queued   JobState = "queued"   // it does not fit beside the others yet
	Starting JobState = "starting" // planned; its executor, or its bytes, are not there yet
	Training JobState = "running"
	Unknown  JobState = "unknown" // its executor cannot be reached, and may be training
	Parking  JobState = "parking"
	Parked   JobState = "parked"
	Ending   JobState = "stopping"
	Done     JobState = "finished"
	Halted   JobState = "stopped"
	Broken   JobState = "failed"
)

// Over reports whether the job will never run again.
func (p JobState) Over() bool { return p == Done || p == Halted || p == Broken }

// Record is what a controller knows about a job, and finds again after a restart.
type Record struct {
	Spec     Spec        `json:"spec"`
	Seq      int64       `json:"order" bound:"count"` // of submission
	State    JobState    `json:"phase"`
	Why      string      `json:"why,omitzero"`                    // it waits, or failed
	Diverged bool        `json:"diverged,omitzero"`               // it has failed: see JobStatus
	Need     graph.Bytes `json:"need_bytes,omitzero" bound:"sum"` // that it waits for
	Executor string      `json:"executor,omitzero"`
	// those that it had, the newest last, MaxExecutors at most: they may write to its log; "*" stands for those that it
	// had under a release before, which are not known
	Executors []string `json:"executors,omitempty"`
	On        string   `json:"on,omitzero"` // name of the device that it is planned for on; "": the controller's own
	// of its newest assignment: it rises each time that the job gets an executor
	Incarnation int64 `json:"starts,omitzero" bound:"count"`
	Restarts    int   `json:"restarts,omitzero" bound:"sum"` // since the newest checkpoint
	// iterations of the checkpoint with which this incarnation begins; of a replica, of the newest that all have
	From int `json:"from,omitzero" bound:"count"`
	At   int `json:"at,omitzero" bound:"sum"` // of a replica: as in its assignment
	// the newest that was heard of
	Checkpoint *Checkpoint `json:"checkpoint,omitempty"`
	Park       Place       `json:"park,omitzero"`      // where it is parked, or is to be
	Preempted  bool        `json:"preempted,omitzero"` // it was parked for another, and waits to go on
	Target     string      `json:"target,omitzero"`    // device to which it moves when it has left its own; "": none
	Held       []Holding   `json:"held,omitempty"`     // bytes that older incarnations may still have

	// since when it waits: since the Unix epoch
	Waiting time.Duration `json:"waiting_ns,omitzero" bound:"sum"`
	Epoch   int64         `json:"epoch,omitzero" bound:"count"` // of the newest layout
	// of the newest layout that is over, with all before it
	Cleared int64 `json:"cleared_epoch,omitzero" bound:"count"`
	Granted int64 `json:"granted_epoch,omitzero" bound:"count"` // of the layout that it was told to train with
	// of the layout that it was last heard to train with
	Applied int64 `json:"applied_epoch,omitzero" bound:"count"`
	// what it counts with: the larger of old and new arena
	Claim graph.Bytes `json:"claim_bytes,omitzero" bound:"sum"`
	Base  graph.Bytes `json:"base_bytes,omitzero" bound:"sum"` // of the claim: for as long as it is not in Home
	// by which base and claim count; none: all of the claim
	Sharing Sharing `json:"memory_sharing,omitzero"`
	// expected beside the others by its newest plan, as a share of its speed alone; 0: nothing is
	Speed float64 `json:"expected_speed,omitzero" bound:"ratio"`
	// predicted for its newest plan, beside the others, of an iteration: so many times as long as alone on its device;
	// 0: nothing is, as on a controller of one device
	Slowdown float64 `json:"slowdown,omitzero" bound:"ratio"`
	// measured: Pace, by what the ops of an iteration take alone and without a plan, as they were measured; 0: no
	// iteration was reported; in an Answer alone
	Measured float64     `json:"measured_slowdown,omitzero" bound:"ratio"`
	Host     graph.Bytes `json:"host_bytes,omitzero" bound:"sum"` // what it counts with on the host
	// of the layout that it was last heard to train with
	Arena     graph.Bytes `json:"arena_bytes,omitzero" bound:"bytes"`
	SlotPeak  graph.Bytes `json:"slot_peak_bytes,omitzero" bound:"bytes"` // of that layout
	Plans     int         `json:"plans,omitzero" bound:"count"`           // that it was heard to train with
	Link      Rates       `json:"link,omitzero"`                          // its share, where the link is limited
	Iteration int         `json:"iteration" bound:"sum"`
	PlansMade int         `json:"replans,omitzero" bound:"count"` // plans that were made for it
	Device    string      `json:"device,omitzero"`                // that the newest layout is for
	// of all jobs together, when it was last planned for; 0: no limit
	Budget graph.Bytes `json:"budget_bytes,omitzero" bound:"sum"`
	// the newest layout is planned for: "cold-start", as predicted, or "updated", as measured
	Latencies string  `json:"latencies,omitzero"`
	Reason    string  `json:"replan_reason,omitzero"` // of the last plan
	Result    *Result `json:"result,omitempty"`
	// of a script
	Script *Allocated `json:"script,omitempty"`
	// likewise: why there is no plan for its newest graph, and what helps; it trains without one
	Unplanned string `json:"unplanned,omitzero"`

	Submitted time.Duration `json:"submitted_ns,omitzero" bound:"sum"` // since the Unix epoch
	// of an iteration, a moving average; in an Answer alone
	Pace time.Duration `json:"pace_ns,omitzero" bound:"span"`
	// of an iteration: waits for the lease, as the pace
	Gate time.Duration `json:"gate_ns,omitzero" bound:"span"`
	Loss *Loss         `json:"loss,omitempty" bound:"any"` // of the last iteration; in an Answer alone
}

// Packed is a graph as a request has it.
type Packed struct {
	Graph   []byte          `json:"graph" bound:"any"`                    // its JSON form, by gzip
	Latency []time.Duration `json:"latency_ns,omitempty" bound:"latency"` // per op, of a script as it was recorded
}

// Recorded are the latencies of a script's graph as it was recorded. They are beside the graph: another recording of
// the same has others.
type Recorded struct {
	Latency []time.Duration `json:"latency_ns" bound:"latency"` // per op
}

// maxExecutors is how many executors of a job are known.
const maxExecutors = 100

// Give names the executor of a job's newest incarnation.
func (r *Record) Give(executor string) {
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
	if len(r.Executors) == 0 && r.Incarnation > 0 {
		return true // the controller is of the release before
	}
	return slices.ContainsFunc(r.Executors, func(executor string) bool {
		return executor == "*" || LogSubject(executor, r.Spec.Name) == log
	})
}

// Epochs are those of the layouts that may be in force, or come into force, from first to last.
func (r *Record) Epochs() (first, last int64) { return max(r.Applied, r.Cleared+1), r.Granted }

// Hides reports whether a command that names both a job and, together, some replicas means the latter, of which this is
// the first: a job that runs or waits hides one that is over, and of two that are over the one that came last.
func (r *Record) Hides(job *Record) bool {
	return job.State.Over() && (!r.State.Over() || r.Seq > job.Seq)
}

// Settings are what an administrator has set while a controller ran. A controller finds them again after a restart.
type Settings struct {
	Device string      `json:"device"`                     // its identity
	Budget graph.Bytes `json:"budget_bytes" bound:"bytes"` // for the arenas of all jobs together; 0: no limit
}

// Tenants are the shares that an administrator has given to users, and what devices owe these. A controller finds them
// again after a restart.
type Tenants struct {
	Shares map[string]int `json:"shares" bound:"share"` // by user: from 1 to MaxShare
	Debts  []TenantDebt   `json:"debts,omitempty"`      // as they were not long ago
}

// TenantDebt is by how much a tenant got less than its share of a device; below 0: by how much more.
type TenantDebt struct {
	Device string        `json:"device,omitzero"` // by name; "": that of the controller's process
	Tenant string        `json:"tenant,omitzero"` // "": the administrator
	Debt   time.Duration `json:"debt_ns" bound:"signed"`
}

// MaxShare is the largest share of a tenant.
const MaxShare = 1000

// TenantState is how a tenant fares.
type TenantState struct {
	Name    string  `json:"name,omitzero"` // "": the administrator
	Share   int     `json:"share" bound:"share"`
	Running int     `json:"running" bound:"count"` // jobs
	Waiting int     `json:"waiting" bound:"count"` // jobs in the queue
	Speed   float64 `json:"speed" bound:"ratio"`   // of its jobs together, measured: 1 is one job alone on a device
	// by how much its jobs have done less than its share, counted in what that takes alone, where that is most; below
	// 0: by how much more
	Behind time.Duration `json:"behind_ns,omitzero" bound:"signed"`
	// what its iterations since the controller was started take alone
	Served time.Duration `json:"served_ns" bound:"sum"`
}

// Learnt is what ops have taken on a device, whatever job they were in. A controller finds it again after a restart.
type Learnt struct {
	Device string     `json:"device"` // its identity
	Ops    []LearntOp `json:"ops"`    // at most MaxLearnt; those that were heard of last come last
}

// LearntOp is what ops of one signature have taken.
type LearntOp struct {
	Signature graph.Signature `json:"signature"`
	Latency   time.Duration   `json:"latency_ns" bound:"latency"` // a moving average
	Reports   int             `json:"reports" bound:"count"`      // that it is the average of
}

// MaxLearnt is of how many signatures latencies are kept: those of some thirty networks.
const MaxLearnt = 4096

// Leadership says which of the controllers with one state leads. The leader stores it again and again; others take over
// when it has not changed for a while.
type Leadership struct {
	// of the candidate, another at each start; "": the last leader has resigned
	ID    string `json:"id,omitzero"`
	Where string `json:"where"`              // host and process
	Term  int64  `json:"term" bound:"count"` // rises with each leader, from 1
	Beat  int64  `json:"beat" bound:"count"` // rises each time that the leader stores it
	Lease string `json:"lease"`              // the lease of the device's memory, the same in every term
}
