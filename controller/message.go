package controller

import (
	"time"

	"tensile/controller/plans"
	"tensile/graph"
	"tensile/wire"
)

// Input is what a machine is told. One field is set, beside From, By and To.
type Input struct {
	// From is the number of whoever waits for the answer to a Submit or Request. 0: nobody waits.
	From int64 `json:"from,omitzero"`
	// By is the user who asks. "": the administrator.
	By string `json:"by,omitzero"`
	// Submit are new jobs. All are taken, or none.
	Submit []Submission `json:"submit,omitzero"`
	// Request is of any verb but Submit and Jobs.
	Request *wire.Request `json:"request,omitzero"`
	// To is what a script has recorded, beside the Request of a SetGraph.
	To     *Submission  `json:"to,omitzero"`
	Status *wire.Status `json:"status,omitzero"`
	Report *wire.Report `json:"report,omitzero"`
	// Ended tells of the end of an executor's process.
	Ended *ExecutorEnd `json:"gone,omitzero"`
	// PlanResult answers an Output.PlanRequest.
	PlanResult *plans.Result `json:"planned,omitzero"`
	Tick       *Tick         `json:"tick,omitzero"`
}

// Submission is a new job.
type Submission struct {
	Spec  wire.Spec    `json:"spec"`
	Graph *graph.Graph `json:"-"`
	// At is when it was submitted, since the Unix epoch.
	At time.Duration `json:"at_ns"`

	// Latency holds, per op of a script's graph, how long it took when it was recorded. It is nil for other jobs.
	Latency []time.Duration `json:"latency_ns,omitempty"`
}

// ExecutorEnd tells that the process of an executor has ended, as whoever launched it knows.
type ExecutorEnd struct {
	Executor string `json:"executor"`
	// Lives are the processes of that name that have ended. nil: they are not known.
	Lives []string `json:"lives,omitempty"`
	Why   string   `json:"why"`
}

// Tick tells that time has passed. It comes every second or so.
type Tick struct {
	// Deaf says that nothing that executors say can arrive now, as when the bus stores nothing. Then no executor counts
	// as silent.
	Deaf bool `json:"deaf,omitzero"`
}

// Output is what a machine wants done. One field is set. Outputs are carried out in their order.
type Output struct {
	// Answer goes to whoever waits for a Submit or Request.
	Answer *Answer `json:"answer,omitzero"`
	// Record is to be stored under the name of its job.
	Record *wire.Record `json:"record,omitzero"`
	// Graph and Layout are to be stored where an executor finds them.
	Graph  *Delivery `json:"graph,omitzero"`
	Layout *Delivery `json:"layout,omitzero"`
	// Result is to be stored for whoever submitted the job.
	Result *Collection `json:"result,omitzero"`
	// Orders go to their executor.
	Orders *wire.Orders `json:"orders,omitzero"`
	ProcessOutput
	// Learnt, Settings, Device and Tenants are to be stored.
	Learnt   *Learnt        `json:"learnt,omitzero"`
	Settings *wire.Settings `json:"set,omitzero"`
	Device   *wire.Device   `json:"device,omitzero"`
	Tenants  *wire.Tenants  `json:"tenants,omitzero"`
	// Drop names what is to be removed.
	Drop *Drop `json:"drop,omitzero"`
	PlanOutput
	// Event is for the log.
	Event *Event `json:"event,omitzero"`
}

// ProcessOutput is an output about the process of an executor.
type ProcessOutput struct {
	// Launch is the name of an executor that is to be started.
	Launch string `json:"launch,omitzero"`
	// Kill is the name of an executor that was launched, and whose process is to be ended.
	Kill string `json:"kill,omitzero"`
	// Forget is the name of an executor that has left: what is stored for it is to be removed.
	Forget string `json:"forget,omitzero"`
}

// PlanOutput is an output for who makes plans.
type PlanOutput struct {
	// PlanRequest is to be answered by an Input.PlanResult.
	PlanRequest *plans.Request `json:"plan,omitzero"`
	// Explain is to be answered to whoever asks; the machine does not hear the answer.
	Explain *plans.ExplainRequest `json:"ask,omitzero"`
	// Cancel is the ticket of a plan request whose answer would be ignored.
	Cancel int64 `json:"cancel,omitzero"`
}

// Answer answers a Submit or Request.
type Answer struct {
	To int64 `json:"to"` // Input.From of the request
	wire.Answer
}

// Delivery is an object for an executor: a Graph or a Layout.
type Delivery struct {
	Executor string       `json:"executor"`
	Job      string       `json:"job"`
	ID       int64        `json:"id"` // of the job
	Graph    *graph.Graph `json:"-"`
	Layout   *wire.Layout `json:"-"`
}

// Collection is the result of a job that is over, with its losses and weights.
type Collection struct {
	// Key is where the executor has left the result. "": it has left none.
	Key string `json:"key,omitzero"`
	// FromReports is what reports have told. It counts if there is nothing at Key. nil: they have told nothing.
	FromReports *wire.Result `json:"heard,omitzero"`
	// Object is where the result is to be stored.
	Object string `json:"object"`
}
