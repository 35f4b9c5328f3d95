package explain

import (
	"time"

	"tensile/graph"
	"tensile/plan"
)

// Time divides an iteration as it was measured. All parts but Iteration add up to Iteration.
type Time struct {
	Number    int           `json:"number"` // of the iteration
	Iteration time.Duration `json:"iteration_ns"`
	Alone     time.Duration `json:"alone_ns"`    // the ops, each once and in its first variant, while no other job runs
	Variants  time.Duration `json:"variants_ns"` // that other variants of ops take more, or less, than the first ones
	Again     time.Duration `json:"again_ns"`    // ops that are executed a second time
	Beside    time.Duration `json:"beside_ns"`   // that ops took more, or less, than alone: other jobs, and noise
	Stall     time.Duration `json:"stall_ns"`    // compute waits for copies
	Gate      time.Duration `json:"gate_ns"`     // compute waits for memory that other jobs have
	Rest      time.Duration `json:"rest_ns"`     // between steps
}

// Measured is one iteration of a job, as its executor has measured it.
type Measured struct {
	Number            int
	Steps             []time.Duration // per step of the plan
	Stall, Gate, Wall time.Duration
}

// TimeOf divides a measured iteration of a plan. alone is how long a step takes while no other job runs: of the variant
// that the plan names, or of the op's first one.
func TimeOf(p *plan.Plan, m Measured, alone func(op graph.OpID, variant string, first bool) time.Duration) Time {
	t := Time{Number: m.Number, Iteration: m.Wall, Stall: m.Stall, Gate: m.Gate, Rest: m.Wall - m.Stall - m.Gate}
	ran := make(map[graph.OpID]bool)
	for i, s := range p.Steps {
		takes := alone(s.Op, s.Variant, false)
		if ran[s.Op] {
			t.Again += takes
		} else {
			first := alone(s.Op, s.Variant, true)
			t.Alone, t.Variants = t.Alone+first, t.Variants+takes-first
		}
		ran[s.Op] = true
		t.Beside += m.Steps[i] - takes
		t.Rest -= m.Steps[i]
	}
	return t
}
