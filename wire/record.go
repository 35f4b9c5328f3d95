package wire

import (
	"slices"
	"time"

	"tensile/graph"
)

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
	// Wait is what the job waits for, as far as that is known.
	Wait Wait `json:"wait,omitzero"`
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
