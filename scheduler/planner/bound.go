package planner

import (
	"math"
	"slices"
	"time"

	"tensile/graph/cost"
)

// Demand is what a job needs of a device whatever its plan.
type Demand struct {
	Weight float64 // the weight with which the job's slowdown counts
	Busy   float64 // the part of the compute unit that it needs to get on as fast as alone and without a plan
	Least  float64 // the slowdown that no plan beats, even alone: below 1 where ops have faster variants
}

// Demand returns what a job of weight 1 needs of a device by the latencies of its ops, alone and in their first
// variants: each is executed at least once an iteration, in its fastest variant at best.
func (p *Profile) Demand(latency []time.Duration, sharing cost.Sharing) Demand {
	var alone, least time.Duration
	var use cost.Use
	for op, first := range latency {
		fastest := first
		if p.Variants != nil {
			for _, v := range p.Variants[op] {
				fastest = min(fastest, v.Takes(first))
			}
		}
		sharing.Add(&use, fastest)
		alone, least = alone+first, least+fastest
	}
	// An iteration is expected in whole nanoseconds, cut off, and so is each op beside others, rounded.
	exact := max(0, 1-(1+float64(len(latency))/2)/float64(max(1, least))) / float64(max(1, alone))
	return Demand{Weight: 1, Busy: sharing.Share * float64(use.Work) * exact, Least: float64(least) * exact}
}

// LeastSlowdowns is a lower bound of the sum of weighted slowdowns of jobs on a device, by any plans. However they
// share the compute unit, it does not do more work than there is time, so that the sum of Busy/slowdown is at most 1;
// and no slowdown is below Least. The least sum under these two has slowdowns in proportion to sqrt(Busy/Weight), but
// for the jobs that this would take below their Least. Expect measures over a number of iterations that need not be
// whole, so that a job may seem to do more work than it does by one part in as many as it measures.
func LeastSlowdowns(jobs []Demand) (sum float64) {
	room := float64(measured+1) / measured
	free := slices.Clone(jobs)
	for len(free) > 0 {
		var roots float64
		for _, j := range free {
			roots += math.Sqrt(j.Busy * j.Weight)
		}
		left := free[:0]
		for _, j := range free {
			if room > 0 && roots/room*math.Sqrt(j.Busy/j.Weight) > j.Least {
				left = append(left, j)
				continue
			}
			sum += j.Weight * j.Least
			room -= j.Busy / max(j.Least, 1e-9)
		}
		if len(left) == len(free) {
			sum += roots * roots / room
			break
		}
		free = left
	}
	return sum * (1 - 1e-9) // sums of floats may be off by less
}

// Slowdown is how many times as long as its ops take alone an iteration of a request's job is to take by the plans for
// all.
func (d Device) Slowdown(p *Planned, job int, alone time.Duration) float64 {
	var takes time.Duration
	if p.Expected != nil {
		takes = p.Expected.Iterations[job]
	} else {
		takes = p.Timing(job).Iteration
	}
	if d.Turns { // each of them has the device for itself, one after the other
		takes *= time.Duration(len(p.Jobs))
	}
	return float64(takes) / float64(max(1, alone))
}
