package local

import "tensile/wire"

// Run is the outcome of training several jobs together.
type Run struct{ Jobs []JobRun }

// JobRun is the outcome of one job, and what was measured on the way.
type JobRun struct {
	wire.Result
	// Iterations is how many iterations are complete.
	Iterations int
	Watched    Watched
}
