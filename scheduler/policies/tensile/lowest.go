package tensile

import (
	"cmp"
	"slices"
	"time"

	"tensile/graph"
	"tensile/scheduler"
	"tensile/scheduler/draft"
)

// allowance is the part of a job's time that may be lost where no budget asks for it: a hundredth.
const allowance = 100

// planLowest plans as low as swaps go that cost no time, and recomputations within the allowance of each job. Parts of
// the allowance are tried too: what is recomputed early may lie in the way later. The lowest that keeps to the
// allowance by program.Time is taken.
func (p *planner) planLowest() (scheduler.Result, error) {
	order := p.EarlyUpdates
	if p.options.KeepOrder {
		order = p.GraphOrder
	}
	if p.Request.Together && len(p.Request.Jobs) > 1 {
		return p.lowestTogether(order)
	}
	const parts = 8
	h := newHybrid(p.Session, p.options, order, allGroups(p.Session))
	var tried [][]*draft.Draft
	if !p.Search(func() {
		if !p.options.NoRecompute {
			h.prepare(roomy)
		}
		last := -1
		for part := parts; part >= 0; part-- {
			if k := h.sequenceWithin(part, parts); k != last {
				last = k
				tried = append(tried, p.Ungroup(h.plan(k, 0)))
			}
		}
	}) {
		tried = append(tried, p.Drafts(draft.GraphOrder, p.options.style())) // what costs nothing is there in any case
	}
	slices.SortStableFunc(tried, func(a, b []*draft.Draft) int {
		return cmp.Compare(draft.SumOfPeaks(a), draft.SumOfPeaks(b))
	})
	for i, jobs := range tried {
		relaxed := draft.SumOfPeaks(jobs)
		if p.options.NoRelax {
			relaxed = 0
		}
		result, err := p.Finish(jobs, relaxed)
		if err != nil || i == len(tried)-1 || affordable(p.Session, &result) {
			return result, err
		}
		p.Stage(scheduler.Planning)
	}
	panic("scheduler: a plan without recomputations is always tried")
}

// lowestTogether is lowest for jobs that share memory. The least target is searched for that all jobs keep to.
func (p *planner) lowestTogether(order func(job int) []graph.OpID) (scheduler.Result, error) {
	const rounds = 8
	jobs := p.Drafts(draft.GraphOrder, p.options.style())
	high := p.Needed(jobs)
	low, _ := p.Request.FirstWorkingSets()
	t := newTogether(p.Session, p.options, order, false)
	p.Search(func() {
		for range rounds {
			target := low + (high-low)/2
			t.kept = nil
			t.reach(target)
			if t.best.peak <= target && t.affordable() {
				jobs, high = p.Ungroup(t.best.jobs), t.best.peak
			} else {
				low = target
			}
		}
	})
	relaxed := p.Needed(jobs)
	if p.options.NoRelax {
		relaxed = 0
	}
	return p.Finish(jobs, relaxed)
}

// affordable reports whether no job loses more than its allowance by the best plan.
func (t *together) affordable() bool {
	for i, d := range t.best.jobs {
		m := t.members[i].search
		allowed := int64(m.unplannedTime(0)/allowance) * int64(d.Job().Worth()) * int64(d.Copies())
		if m.lostTime([]*draft.Draft{d}) > allowed {
			return false
		}
	}
	return true
}

// affordable reports whether no job loses more than its allowance.
func affordable(s *draft.Session, result *scheduler.Result) bool {
	for i := range result.Jobs {
		if alone := s.UnplannedTime(i); iteration(s, result, i) > alone+alone/allowance {
			return false
		}
	}
	return true
}

// sequenceWithin returns how much of the sequence takes no job more than so many parts of its allowance.
func (h *hybrid) sequenceWithin(part, parts int) int {
	low, high := 0, len(h.sequence)
	for low < high {
		k := (low + high + 1) / 2
		if h.exceedsAllowance(k, part, parts) {
			low = k
		} else {
			high = k - 1
		}
	}
	return low
}

func (h *hybrid) exceedsAllowance(k, part, parts int) bool {
	h.choose(k)
	for _, c := range h.chains {
		if _, took := c.insert(); took > c.Period()/allowance*time.Duration(part)/time.Duration(parts) {
			return false
		}
	}
	return true
}
