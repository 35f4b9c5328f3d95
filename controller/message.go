package controller

import (
	"time"

	"tensile/graph"
	"tensile/graph/cost"
	"tensile/plan/program"
	"tensile/predictor/correct"
	"tensile/scheduler"
	"tensile/scheduler/planner"
	"tensile/wire"
)

// Input is what a machine is told; one field is set beside From.
type Input struct {
	From       int64         `json:"from,omitzero"`    // who waits for the answer to a Submit or Request; 0: nobody
	By         string        `json:"by,omitzero"`      // the user who asks for it; "": the administrator
	Submit     []Submission  `json:"submit,omitzero"`  // all are taken, or none
	Request    *wire.Request `json:"request,omitzero"` // of any verb but Submit and Jobs
	To         *Submission   `json:"to,omitzero"`      // beside the Request of a SetGraph: what was recorded
	Status     *wire.Status  `json:"status,omitzero"`
	Report     *wire.Report  `json:"report,omitzero"`
	Ended      *ExecutorEnd  `json:"gone,omitzero"`
	PlanResult *PlanResult   `json:"planned,omitzero"`
	Tick       *Tick         `json:"tick,omitzero"`
}

// Submission is a new job.
type Submission struct {
	Spec  wire.Spec     `json:"spec"`
	Graph *graph.Graph  `json:"-"`
	At    time.Duration `json:"at_ns"` // since the Unix epoch

	// per op of a script's graph, as it was recorded; nil of others
	Latency []time.Duration `json:"latency_ns,omitempty"`
}

// ExecutorEnd tells that the process of an executor has ended, as whoever launched it knows.
type ExecutorEnd struct {
	Executor string   `json:"executor"`
	Lives    []string `json:"lives,omitempty"` // of that name that have ended; nil: they are not known
	Why      string   `json:"why"`
}

// Tick tells that time has passed. It comes every second or so.
type Tick struct {
	// Deaf: nothing that executors say can arrive now, as with a bus that stores nothing. None counts as silent.
	Deaf bool `json:"deaf,omitzero"`
}

// Output is what a machine wants done; one field is set. Outputs are to be carried out in their order.
type Output struct {
	Answer *Answer      `json:"answer,omitzero"` // to a Submit or Request
	Record *wire.Record `json:"record,omitzero"` // to be stored under the name of its job
	Graph  *Delivery    `json:"graph,omitzero"`  // to be stored where an executor finds it
	Layout *Delivery    `json:"layout,omitzero"`
	Result *Collection  `json:"result,omitzero"` // to be stored for whoever submitted the job
	Orders *wire.Orders `json:"orders,omitzero"` // to an executor
	Launch string       `json:"launch,omitzero"` // an executor is to be started by this name
	Kill   string       `json:"kill,omitzero"`   // the process of an executor that was launched is to be ended
	// an executor has left: what is stored for it is of no use any more
	Forget   string         `json:"forget,omitzero"`
	Learnt   *Learnt        `json:"learnt,omitzero"` // to be stored
	Settings *wire.Settings `json:"set,omitzero"`    // to be stored
	Device   *wire.Device   `json:"device,omitzero"` // to be stored
	// to be stored
	Tenants     *wire.Tenants   `json:"tenants,omitzero"`
	Drop        *Drop           `json:"drop,omitzero"`   // of a job that is over and not remembered any more
	PlanRequest *PlanRequest    `json:"plan,omitzero"`   // an errand, to be answered by a Planned
	Explain     *ExplainRequest `json:"ask,omitzero"`    // an errand: its answer is for whoever asks alone
	Cancel      int64           `json:"cancel,omitzero"` // the errand of that ticket: its answer would be ignored
	Event       *Event          `json:"event,omitzero"`  // for the log
}

// Answer is what comes of a Submit or Request.
type Answer struct {
	To int64 `json:"to"` // Input.From
	wire.Answer
}

// Delivery is an object for an executor.
type Delivery struct {
	Executor string       `json:"executor"`
	Job      string       `json:"job"`
	ID       int64        `json:"id"` // of the job
	Graph    *graph.Graph `json:"-"`
	Layout   *wire.Layout `json:"-"`
}

// Collection is the result of a job that is over, with its losses and weights.
type Collection struct {
	Key         string       `json:"key,omitzero"`   // where its executor has left it; "": nowhere
	FromReports *wire.Result `json:"heard,omitzero"` // what reports have told, for want of that; nil: nothing
	Object      string       `json:"object"`         // what it becomes
}

// PlanRequest is an errand: plans for jobs together, which take seconds to make. Machines have one made at a time.
type PlanRequest struct {
	Ticket int64 `json:"ticket"`
	// Device is that for which plans are made; nil: the controller's own. Weigh: slowdowns are wanted. Near: jobs
	// have come or gone since the plans that there are were made, and most may keep theirs.
	Device        *wire.Device `json:"device,omitempty"`
	WantSlowdowns bool         `json:"weigh,omitzero"`
	Incremental   bool         `json:"near,omitzero"`
	Jobs          []Candidate  `json:"jobs"`
	// so many are planned for; of the others as many as fit, in turn
	Admitted int         `json:"admitted"`
	Budget   graph.Bytes `json:"budget_bytes,omitzero"`   // for the arenas of all jobs together; 0: no limit
	Reserved graph.Bytes `json:"reserved_bytes,omitzero"` // of that, for nobody: executors out of reach may have it
	// of that, those of processes that stay, but for what is reserved and what candidates start
	Contexts wire.Contexts `json:"contexts,omitzero"`

	HostMemory   graph.Bytes `json:"host_memory_bytes,omitzero"`   // 0: no limit
	HostReserved graph.Bytes `json:"host_reserved_bytes,omitzero"` // of that, what others have

	Correction correct.Line `json:"line"` // by which profiles are wrong on the device

	// Learnt are the latencies that were learnt, for candidates without a profile; nil: all have one.
	Learnt map[graph.Signature]time.Duration `json:"-"`
}

// Candidate is a job that is to be planned for. Whoever makes the plan may keep and read all of it: the machine changes
// nothing that it has given away.
type Candidate struct {
	Spec          wire.Spec        `json:"spec"`
	Epoch         int64            `json:"epoch"` // of the plan
	Graph         *graph.Graph     `json:"-"`
	Profile       *planner.Profile `json:"-"`             // nil: it is to be made
	Latency       []time.Duration  `json:"-"`             // per op, as if it ran alone; nil without a profile
	Slack         []time.Duration  `json:"-"`             // per op: by how much the latency may be off; may be nil
	Measured      bool             `json:"measured"`      // latencies follow what ops took here, in this job or others
	Unchecked     bool             `json:"fresh"`         // whether it fits alone is not known yet
	Remaining     int              `json:"left"`          // iterations over which a better plan can pay
	Current       *ProvenLayout    `json:"has,omitempty"` // its newest; nil: none
	HostExtra     graph.Bytes      `json:"-"`             // that it has on the host beside its slots
	HostParked    graph.Bytes      `json:"-"`             // that it has on the host also if it is not admitted
	DeviceExtra   graph.Bytes      `json:"-"`             // that it has on the device beside its arena
	StartsProcess bool             `json:"-"`             // a process is started for it, which has a context
	LastReport    *wire.Report     `json:"-"`             // of an iteration with that, if the policy has asked for it
}

// PlanResult answers a Plan.
type PlanResult struct {
	Ticket       int64                   `json:"ticket"`
	Jobs         []PlannedJob            `json:"jobs"`              // for the first jobs of the Plan, as many as fit
	NewProfiles  map[int]planner.Profile `json:"profiles,omitzero"` // that were made, by the index of the candidate
	NoPlan       *NoPlan                 `json:"why,omitzero"`      // there are no plans for more
	WantsReports bool                    `json:"again,omitzero"`    // the policy wants to plan again, with reports
	NeverFit     map[int]string          `json:"never,omitzero"`    // why a job cannot even run alone, by its index
}

// PlannedJob is what a job would change to.
type PlannedJob struct {
	Layout    *ProvenLayout `json:"layout,omitzero"` // nil: what it has is the same
	Latencies string        `json:"latencies"`       // where they come from, as scheduler.Scheduled has it
	Out       cost.Link     `json:"out"`             // the job's share of the link
	In        cost.Link     `json:"in"`

	// Speed is that expected of it beside the others, as a share of its speed alone and without a plan, where jobs
	// share memory by gates; 0: nothing is expected.
	Speed float64 `json:"speed,omitzero"`

	// Slowdown is how many times as long as alone, and without a plan, an iteration is to take beside the others; Alone
	// is that time. 0: they were not wanted.
	Slowdown float64       `json:"slowdown,omitzero"`
	Alone    time.Duration `json:"alone_ns,omitzero"`

	Gain       time.Duration `json:"gain_ns"` // that its next iterations take less, times the job's priority
	Transition time.Duration `json:"transition_ns"`

	details *planDetails // nil where it comes from a recording or a test
}

// planDetails is how a plan came out, for explanations.
type planDetails struct {
	scheduler.Scheduled
	program *program.Program
}

// NoPlan is why there is no plan.
type NoPlan struct {
	Why    string      `json:"why"`
	Need   graph.Bytes `json:"need_bytes,omitzero"` // 0: it is not for want of memory
	Budget graph.Bytes `json:"budget_bytes,omitzero"`
	OnHost bool        `json:"on_host,omitzero"` // they are of host memory
	// that Need has, and what else it has is the jobs'
	Contexts wire.Contexts `json:"contexts,omitzero"`
}

// ProvenLayout is a plan with offsets, proven.
type ProvenLayout struct {
	Wire    *wire.Layout     `json:"wire"`
	Peak    graph.Bytes      `json:"peak_bytes"`      // of its slots
	Host    graph.Bytes      `json:"host_bytes"`      // of its host slots
	Claim   *Claim           `json:"claim,omitempty"` // nil: an arena of its own
	program *program.Program // nil where it comes from a recording
}
