package local

import (
	"math"
	"slices"
	"time"

	"tensile/plan"
)

// Watched collects the reports of a job: the time of each iteration, and under the first plan the time of each step.
type Watched struct {
	// First is the time of the first iteration. 0: it was not reported.
	First time.Duration
	// iterationTimes has one time per iteration. 0: it was not reported.
	iterationTimes []time.Duration
	// epoch is that of the first plan.
	epoch int64
	// steps has the times of the steps of each iteration with the first plan.
	steps [][]time.Duration
}

// maxWatched is how many iterations of the first plan are kept. Predictions are compared with the medians of their
// steps.
const maxWatched = 32

// Add takes a report.
func (w *Watched) Add(iteration int, epoch int64, wall time.Duration, steps []time.Duration) {
	for len(w.iterationTimes) <= iteration {
		w.iterationTimes = append(w.iterationTimes, 0)
	}
	w.iterationTimes[iteration] = wall
	if iteration == 0 {
		w.First, w.epoch, w.steps = wall, epoch, append(w.steps, steps)
		return
	}
	if epoch == w.epoch && len(w.steps) < maxWatched {
		w.steps = append(w.steps, steps)
	}
}

// Latencies returns the median latency of each op of a plan's graph, which has so many ops, in its first variant: first
// converts the time of a step to that of the first variant. It is nil unless all ops were reported.
func (w *Watched) Latencies(first func(plan.Step, time.Duration) time.Duration, p *plan.Plan, ops int) []time.Duration {
	latency := make([]time.Duration, ops)
	for i, took := range w.medians(p) {
		latency[p.Steps[i].Op] = first(p.Steps[i], took)
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

// Error is the mean relative error of the latencies that a plan was made with, over its steps, against the medians of
// what was measured. nil: nothing was reported of that plan.
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

// Mean is the mean time of the iterations [from, to) that were reported.
func (w *Watched) Mean(from, to int) time.Duration {
	var sum time.Duration
	n := 0
	for i := from; i < min(to, len(w.iterationTimes)); i++ {
		if w.iterationTimes[i] > 0 {
			sum += w.iterationTimes[i]
			n++
		}
	}
	return sum / time.Duration(max(1, n))
}
