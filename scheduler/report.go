package scheduler

import (
	"time"

	"tensile/graph"
	"tensile/plan"
)

// Report is what one iteration of a job took, as measured.
type Report struct {
	Plan   *plan.Plan      // that the job followed
	Steps  []time.Duration // latency of each step of the plan, waits left out
	Copies []Copy          // in the order of the plan's moves
}

// Copy is one copy of an iteration. Its times are from the end of the iteration before.
type Copy struct {
	Kind    plan.MoveKind // Out or In
	Storage graph.StorageID
	After   int // the step that it followed
	Start   time.Duration
	End     time.Duration
	Stall   time.Duration // how long the job stood still for it
}
