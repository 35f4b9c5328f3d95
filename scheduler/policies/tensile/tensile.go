package tensile

import (
	"cmp"
	"errors"

	"tensile/graph"
	"tensile/scheduler"
	"tensile/scheduler/draft"
)

// planner is one call of Plan.
type planner struct {
	*draft.Session
	options Options
}

// Plan plans swaps and recomputations for all jobs until their packed plans fit the budget. Plans without moves are
// kept if they fit. How well tight plans pack differs, so if no plan with early updates fits, the order of the graph is
// tried too.
func Plan(s *draft.Session) (scheduler.Result, error) {
	r := &s.Request
	workingSets, err := r.CheckWorkingSets()
	if err != nil {
		return scheduler.Result{}, err
	}
	p := &planner{s, scheduler.OptionsOf[Options](r)}
	p.Stage(scheduler.Planning)
	if r.Budget == 0 && r.Lowest {
		return p.lowest()
	}
	plain := p.Drafts(draft.GraphOrder, p.options.style())
	if r.Budget == 0 || draft.SumOfPeaks(plain) <= r.Budget {
		result, err := p.Finish(plain, r.Budget, p.options.NoRelax)
		if err != nil || r.Budget == 0 || result.Arena <= r.Budget {
			return result, err
		}
		p.Stage(scheduler.Planning)
	}
	return p.within(workingSets)
}

// within plans until the packed plans fit the budget. No target is below the working sets.
func (p *planner) within(workingSets graph.Bytes) (scheduler.Result, error) {
	orders := []func(*graph.Graph) []graph.OpID{p.EarlyUpdates, draft.GraphOrder}
	if p.options.KeepOrder {
		orders = orders[1:]
	}
	var refused error
	for _, order := range orders {
		for _, alone := range []bool{p.options.NoHybrid, true} {
			result, err := p.tighten(order, workingSets, alone)
			if !errors.Is(err, scheduler.ErrNoPlan) {
				return result, err
			}
			if limit := (*scheduler.WorkLimitError)(nil); errors.As(err, &limit) {
				limit.Last = cmp.Or(limit.Last, refused)
				return scheduler.Result{}, limit
			}
			if refused == nil {
				refused = err
			}
			if alone {
				break
			}
			p.Stage(scheduler.Planning)
		}
	}
	return scheduler.Result{}, refused
}

// tighten plans, packs and lowers the target by the bytes that the packed plans are over the budget, until they fit
// (Complete Scheduling, TENSILE Algorithm 3, with packing in the loop). No plan is below the working sets. Swaps that
// cost no time come first, then, unless alone is set, recomputations planned together with swaps; what is still above
// the target is forced.
func (p *planner) tighten(order func(*graph.Graph) []graph.OpID, workingSets graph.Bytes,
	alone bool) (scheduler.Result, error) {
	h, r := newHybrid(p.Session, p.options, order), &p.Request
	target := max(workingSets, r.Budget-r.Budget/packing)
	rounds := p.options.MaxRounds
	if rounds == 0 {
		rounds = 12
	}
	var jobs []*draft.Draft
	var last error
	for round := 1; ; round++ {
		fits := false
		if !p.Search(func() {
			switch {
			case !alone:
				jobs = h.reach(target)
			case jobs == nil:
				jobs = h.plan(0, target)
			case !p.options.NoSwap:
				draft.SwapFreely(jobs, target)
			}
			fits = force(jobs, target, p.options)
		}) {
			if alone || h.best == nil || h.lowest > target {
				return scheduler.Result{}, &scheduler.WorkLimitError{Work: p.Work(), Last: last}
			}
			jobs, fits = h.best, true
		}
		final := jobs
		if alone {
			final = draft.Clones(jobs) // these are worked on in the next round
		}
		result, err := p.Finish(final, target, p.options.NoRelax)
		if err != nil || result.Arena <= r.Budget {
			return result, err
		}
		if !fits || target <= workingSets || round == rounds {
			_, why := r.WorkingSets()
			last = &scheduler.OverBudgetError{Need: result.Arena, Budget: r.Budget,
				Why: "the tightest plan found packs into that" + draft.AtSwapLimit(jobs) +
					"; the largest steps alone: " + why}
			return scheduler.Result{}, last
		}
		last = &scheduler.OverBudgetError{Need: result.Arena, Budget: r.Budget,
			Why: "the tightest plan found packs into that"}
		if p.Spent() {
			return scheduler.Result{}, &scheduler.WorkLimitError{Work: p.Work(), Last: last}
		}
		target = max(workingSets, target-(result.Arena-r.Budget))
		p.Stage(scheduler.Planning)
	}
}

// packing is the part of the budget that is left for what packing wastes, to begin with.
const packing = 256
