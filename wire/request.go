package wire

import (
	"tensile/graph"
	"tensile/scheduler/explain"
)

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
	// Job is the name of the job that the request is about; for Jobs, that of the last job of the page before, "" for
	// the first page.
	Job string `json:"job,omitzero"`
	// After is, for Jobs, the Order of that job.
	After int64 `json:"after,omitzero" bound:"count"`

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
	// More says, for Jobs, that there are more jobs than these: [AskJobs] asks for all of them.
	More bool `json:"more,omitzero"`
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

// AskJobs asks for all jobs, one page after the other. Each is of its own moment.
func AskJobs(ask func(Request) (Answer, error)) (Answer, error) {
	all, err := ask(Request{Verb: Jobs})
	for more := all.More && len(all.Jobs) > 0; more && err == nil; {
		last := &all.Jobs[len(all.Jobs)-1]
		var page Answer
		page, err = ask(Request{Verb: Jobs, Job: last.Spec.Name, After: last.Order})
		all.Jobs = append(all.Jobs, page.Jobs...)
		more = page.More && len(page.Jobs) > 0
	}
	all.More = false
	return all, err
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
