package scheduler

import (
	"cmp"
	"slices"
	"time"

	"tensile/program"
)

// allowance is the part of a job's time that may be lost where no budget asks for it: a hundredth.
const allowance = 100

// lowest plans as low as swaps go that cost no time, and recomputations within the allowance of each job. Parts of the
// allowance are tried too: what is recomputed early may lie in the way later. The lowest that keeps to the allowance by
// program.Time is taken.
func (r *Request) lowest() (Result, error) {
	order := earlyUpdates
	if r.Options.KeepOrder {
		order = graphOrder
	}
	const parts = 8
	h := r.hybrid(order)
	var tried [][]*draft
	if !r.search(func() {
		if !r.Options.NoRecompute && !r.Options.NoHybrid {
			h.prepare()
		}
		last := -1
		for part := parts; part >= 0; part-- {
			if k := h.within(part, parts); k != last {
				last = k
				tried = append(tried, h.plan(k, 0))
			}
		}
	}) {
		tried = append(tried, r.drafts(graphOrder)) // what costs nothing is there in any case
	}
	slices.SortStableFunc(tried, func(a, b []*draft) int { return cmp.Compare(sumOfPeaks(a), sumOfPeaks(b)) })
	for i, jobs := range tried {
		result, err := r.finish(jobs, 0)
		if err != nil || i == len(tried)-1 || r.affordable(&result, jobs) {
			return result, err
		}
		r.stage(Planning)
	}
	panic("scheduler: a plan without recomputations is always tried")
}

// affordable reports whether no job loses more than its allowance.
func (r *Request) affordable(result *Result, jobs []*draft) bool {
	for i, d := range jobs {
		r.meter.count(8 * len(d.steps))
		c := program.Compile(r.Jobs[i].Graph, result.Jobs[i].Plan, result.Jobs[i].Layout, program.Options{})
		timing := program.Time(c, program.Durations{Steps: result.Jobs[i].Plan.Made, Out: d.out, In: d.in})
		if alone := r.unplannedTime(i); timing.Iteration > alone+alone/allowance {
			return false
		}
	}
	return true
}

// unplannedTime is what an iteration of job i takes when nothing is swapped or recomputed.
func (r *Request) unplannedTime(i int) time.Duration {
	return r.draft(i, firstSteps(graphOrder(r.Jobs[i].Graph))).period
}

// within returns how much of the sequence takes no job more than so many parts of its allowance.
func (h *hybrid) within(part, parts int) int {
	low, high := 0, len(h.sequence)
	for low < high {
		k := (low + high + 1) / 2
		if h.takes(k, part, parts) {
			low = k
		} else {
			high = k - 1
		}
	}
	return low
}

func (h *hybrid) takes(k, part, parts int) bool {
	h.choose(k)
	for _, c := range h.chains {
		if _, took := c.insert(); took > c.period/allowance*time.Duration(part)/time.Duration(parts) {
			return false
		}
	}
	return true
}
