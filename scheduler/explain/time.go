package explain

import (
	"time"

	"tensile/graph"
	"tensile/plan"
)

// Time divides an iteration as it was measured. All parts but Iteration add up to Iteration.
type Time struct {
	// Number is the number of the iteration, from 0.
	Number int `json:"number"`
	// Iteration is how long it took. The other times add up to it.
	Iteration time.Duration `json:"iteration_ns"`
	// Alone is what the ops take, each once and in its first variant, while no other job runs.
	Alone time.Duration `json:"alone_ns"`
	// Variants is what other variants of ops take more, or less, than the first ones.
	Variants time.Duration `json:"variants_ns"`
	// Again is what ops take that are executed a second time.
	Again time.Duration `json:"again_ns"`
	// Beside is what ops took more, or less, than alone, because of other jobs and noise.
	Beside time.Duration `json:"beside_ns"`
	// Stall is for how long compute waits for copies.
	Stall time.Duration `json:"stall_ns"`
	// Gate is for how long compute waits for memory that other jobs have.
	Gate time.Duration `json:"gate_ns"`
	// Rest is the time between steps.
	Rest time.Duration `json:"rest_ns"`
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
