// Package plans makes the plans that the controller requests. A [Worker] answers a [Request] for some jobs of one
// device by a [Result]: it profiles the graphs that are new, has the planner schedule the jobs together, proves the
// plans, and finds how many of the jobs that wait fit.
//
//	Request: candidates, budgets --> profile --> cache, or keep most plans (incremental.go), or planner --> Result
//
// A worker is pure, and slow: it knows nothing of a controller but what a request says.
package plans

import (
	"encoding/json"
	"time"

	"tensile/controller/memory"
	"tensile/graph"
	"tensile/graph/cost"
	"tensile/plan/program"
	"tensile/predictor/correct"
	"tensile/scheduler"
	"tensile/scheduler/planner"
	"tensile/wire"
	"tensile/wire/recording"
)

// Request asks for plans for jobs together, which take seconds to make. A device has one request open at a time.
type Request struct {
	// Ticket is the number of the request, which the answer repeats.
	Ticket int64 `json:"ticket"`
	// Device is what plans are made for. nil: the controller's own device.
	Device *wire.Device `json:"device,omitempty"`
	// WantSlowdowns asks for PlannedJob.Slowdown, which takes time to compute.
	WantSlowdowns bool `json:"weigh,omitzero"`
	// Incremental says that jobs have come or gone since the present plans were made, and that most may keep theirs.
	Incremental bool        `json:"near,omitzero"`
	Jobs        []Candidate `json:"jobs"`
	// Admitted is how many of Jobs, from the first on, are planned for in any case. Of the others as many as fit are,
	// in their order.
	Admitted int `json:"admitted"`
	// Budget is for the arenas of all jobs together, in bytes. 0: there is no limit.
	Budget graph.Bytes `json:"budget_bytes,omitzero"`
	// Reserved is the part of Budget that executors out of reach may have.
	Reserved graph.Bytes `json:"reserved_bytes,omitzero"`
	// Contexts are those of processes that stay, which also come off Budget. Those in Reserved and those that
	// candidates start are not among them.
	Contexts wire.Contexts `json:"contexts,omitzero"`

	// HostMemory is for what all jobs have on the host, in bytes. 0: there is no limit.
	HostMemory graph.Bytes `json:"host_memory_bytes,omitzero"`
	// HostReserved is the part of HostMemory that others have.
	HostReserved graph.Bytes `json:"host_reserved_bytes,omitzero"`

	// Correction is by how much profiles are wrong on the device.
	Correction correct.Line `json:"line"`

	// Learnt are the latencies that were learnt, for candidates without a profile. nil: all have one.
	Learnt map[graph.Signature]time.Duration `json:"-"`
}

// Candidate is a job that is to be planned for. Whoever makes the plan may keep and read all of it: the machine changes
// nothing that it has given away.
type Candidate struct {
	Spec wire.Spec `json:"spec"`
	// Epoch is that of the plan to be made.
	Epoch int64        `json:"epoch"`
	Graph *graph.Graph `json:"-"`
	// Profile is nil if it is to be made.
	Profile *planner.Profile `json:"-"`
	// Latency holds, per op, how long it takes alone. It is nil without a profile.
	Latency []time.Duration `json:"-"`
	// Slack holds, per op, by how much Latency may be off. It may be nil.
	Slack []time.Duration `json:"-"`
	// Measured says that Latency follows measurements, of this job or of others with the same ops.
	Measured bool `json:"measured"`
	// Unchecked says that it is not known yet whether the job fits when it is alone.
	Unchecked bool `json:"fresh"`
	// Remaining is how many iterations a better plan has to pay in.
	Remaining int `json:"left"`
	// Current is the newest plan of the job. nil: it has none on this device.
	Current *ProvenLayout `json:"has,omitempty"`
	// HostExtra is what the job has on the host beside its slots, in bytes.
	HostExtra graph.Bytes `json:"-"`
	// HostParked is what the job has on the host even if it is not admitted, in bytes.
	HostParked graph.Bytes `json:"-"`
	// DeviceExtra is what the job has on the device beside its arena, in bytes.
	DeviceExtra graph.Bytes `json:"-"`
	// StartsProcess says that an executor is started for the job, which takes a context.
	StartsProcess bool `json:"-"`
	// LastReport is the report of an iteration with Current for which the policy has asked. nil: it has not, or none
	// has come.
	LastReport *wire.Report `json:"-"`
}

// Result answers a [Request].
type Result struct {
	Ticket int64 `json:"ticket"`
	// Jobs are the plans for the first candidates, as many as fit.
	Jobs []PlannedJob `json:"jobs"`
	// NewProfiles are those that were made, by the index of the candidate.
	NewProfiles map[int]planner.Profile `json:"profiles,omitzero"`
	// NoPlan is why there are no plans for more candidates. nil: all have one.
	NoPlan *NoPlan `json:"why,omitzero"`
	// WantsReports says that the policy wants to plan again, with reports of these plans.
	WantsReports bool `json:"again,omitzero"`
	// NeverFit says, by the index of the candidate, why a job cannot run here even when it is alone.
	NeverFit map[int]string `json:"never,omitzero"`
}

// PlannedJob is what a job would change to.
type PlannedJob struct {
	// Layout is the new plan. nil: the present one is the same.
	Layout *ProvenLayout `json:"layout,omitzero"`
	// Latencies says where the latencies come from that were planned with: see scheduler.Scheduled.
	Latencies string `json:"latencies"`
	// Out and In are the job's share of the link.
	Out cost.Link `json:"out"`
	In  cost.Link `json:"in"`

	// Speed is the expected speed of the job beside the others, as a share of its speed alone and without a plan, where
	// jobs share memory by gates. 0: nothing is expected.
	Speed float64 `json:"speed,omitzero"`

	// Slowdown is how many times as long as Alone an iteration is expected to take beside the other jobs. 0: it was not
	// wanted.
	Slowdown float64 `json:"slowdown,omitzero"`
	// Alone is the time of an iteration alone and without a plan. 0: it was not wanted.
	Alone time.Duration `json:"alone_ns,omitzero"`

	// Gain is the time that the next iterations take less by the new plan, times the job's priority.
	Gain time.Duration `json:"gain_ns"`
	// Transition is the time that the change to the new plan takes, times the job's priority.
	Transition time.Duration `json:"transition_ns"`

	// details are nil where the plan comes from a recording or a test.
	details *planDetails
}

// planDetails are what explanations need of a plan.
type planDetails struct {
	scheduler.Scheduled
	program *program.Program
}

// NoPlan is why there is no plan.
type NoPlan struct {
	Why string `json:"why"`
	// Need is how many bytes the jobs need. 0: memory is not what is missing.
	Need graph.Bytes `json:"need_bytes,omitzero"`
	// Budget is how many bytes there are.
	Budget graph.Bytes `json:"budget_bytes,omitzero"`
	// OnHost says that Need and Budget are of host memory.
	OnHost bool `json:"on_host,omitzero"`
	// Contexts are those that are part of Need.
	Contexts wire.Contexts `json:"contexts,omitzero"`
}

// ProvenLayout is a plan with offsets that has passed the proof.
type ProvenLayout struct {
	Wire *wire.Layout `json:"wire"`
	// Peak is the largest footprint of a slot, in bytes.
	Peak graph.Bytes `json:"peak_bytes"`
	// Host is what its slots take on the host, in bytes.
	Host graph.Bytes `json:"host_bytes"`
	// Claim is what a job claims with it. nil: its arena.
	Claim *memory.Claim `json:"claim,omitempty"`
	// program is nil where the layout comes from a recording, or is of a script's former graph and was granted by a
	// controller before this one.
	program *program.Program
}

// IsProven reports whether the program of the layout is known here.
func (l *ProvenLayout) IsProven() bool { return l.program != nil }

// Epoch is that of the plan.
func (l *ProvenLayout) Epoch() int64 { return l.Wire.Plan.Epoch }

// ClaimOrArena is what a job claims while it trains with the layout.
func (l *ProvenLayout) ClaimOrArena() memory.Claim {
	if l.Claim == nil {
		return memory.Exclusive(l.Wire.Arena)
	}
	return *l.Claim
}

// MarshalJSON writes digests of what workers plan with.
func (c Candidate) MarshalJSON() ([]byte, error) {
	form := struct {
		Spec     wire.Spec `json:"spec"`
		Epoch    int64     `json:"epoch"`
		Reckons  string    `json:"reckons"` // digest of profile, latencies, slack and last report
		Measured bool      `json:"measured"`
		Fresh    bool      `json:"fresh"`
		Left     int       `json:"left"`
		Has      int64     `json:"has,omitzero"` // the epoch of Current
		Starts   bool      `json:"starts,omitzero"`
	}{Spec: c.Spec, Epoch: c.Epoch, Measured: c.Measured, Fresh: c.Unchecked, Left: c.Remaining,
		Starts: c.StartsProcess}
	form.Reckons = recording.Digest([]any{c.Profile, c.Latency, c.Slack, c.LastReport})
	if c.Current != nil {
		form.Has = c.Current.Epoch()
	}
	return json.Marshal(form)
}
