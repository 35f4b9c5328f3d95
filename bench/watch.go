package bench

import (
	"math"
	"slices"
	"time"

	"tensile/plan"
)

// Watched is what the reports of a job said, iteration by iteration: how long it took, and under the first plan each step.
type Watched struct {
	First time.Duration   // of the first iteration; 0: there was no report of it
	walls []time.Duration // per iteration; 0: there was no report of it
	epoch int64
	steps [][]time.Duration // per iteration of the first epoch
}

// watchedFor is how many iterations are kept: their median is what predictions are compared with.
const watchedFor = 32

// Add takes a report.
func (w *Watched) Add(iteration int, epoch int64, wall time.Duration, steps []time.Duration) {
	for len(w.walls) <= iteration {
		w.walls = append(w.walls, 0)
	}
	w.walls[iteration] = wall
	if iteration == 0 {
		w.First, w.epoch, w.steps = wall, epoch, append(w.steps, steps)
		return
	}
	if epoch == w.epoch && len(w.steps) < watchedFor {
		w.steps = append(w.steps, steps)
	}
}

// Latencies are the medians of what each op of a plan's graph took; nil if there was no report of all of them.
func (w *Watched) Latencies(p *plan.Plan, ops int) []time.Duration {
	latency := make([]time.Duration, ops)
	for i, took := range w.medians(p) {
		latency[p.Steps[i].Op] = took
	}
	for _, l := range latency {
		if l == 0 {
			return nil
		}
	}
	return latency
}

// medians are those of each step of a plan over the iterations, 0 where nothing was reported.
func (w *Watched) medians(p *plan.Plan) []time.Duration {
	seen := w.steps
	if len(seen) > 1 {
		seen = seen[1:] // the first iteration warms up
	}
	all := make([]time.Duration, len(p.Steps))
	for i := range p.Steps {
		var took []time.Duration
		for _, s := range seen {
			if len(s) == len(p.Steps) && s[i] > 0 {
				took = append(took, s[i])
			}
		}
		if len(took) > 0 {
			slices.Sort(took)
			all[i] = took[len(took)/2]
		}
	}
	return all
}

// Error is the mean over the steps of a plan of how far the latencies that it was made with are from the measured ones (the
// median over iterations), as a share of these. Nil: nothing was reported of that plan.
func (w *Watched) Error(p *plan.Plan) *float64 {
	var sum float64
	var n int
	for i, took := range w.medians(p) {
		if took > 0 {
			sum += math.Abs(float64(p.Made[i]-took)) / float64(took)
			n++
		}
	}
	if n == 0 {
		return nil
	}
	mean := sum / float64(n)
	return &mean
}

// firstEOR is the first iteration of a planned run against that of a vanilla one: both begin cold.
func firstEOR(planned, vanilla *Watched) *float64 {
	if planned.First <= 0 || vanilla.First <= 0 {
		return nil
	}
	eor := float64(planned.First) / float64(vanilla.First)
	return &eor
}
