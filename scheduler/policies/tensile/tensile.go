package tensile

import (
	"cmp"
	"errors"
	"time"

	"tensile/graph"
	"tensile/plan/compile"
	"tensile/plan/program"
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
	workingSets, err := r.CheckFirstWorkingSets()
	if err != nil {
		return scheduler.Result{}, err
	}
	p := &planner{s, scheduler.OptionsOf[Options](r)}
	p.Stage(scheduler.Planning)
	if r.Budget == 0 && r.Lowest {
		return p.planLowest()
	}
	plain := p.Drafts(draft.GraphOrder, p.options.style())
	if r.Budget == 0 || p.Needed(plain) <= r.Budget {
		result, err := p.Finish(plain, 0)
		if err != nil || r.Budget == 0 || result.Least <= r.Budget {
			return result, err
		}
		p.Stage(scheduler.Planning)
	}
	return p.planWithin(workingSets)
}

// planWithin plans until the packed plans fit the budget.
func (p *planner) planWithin(workingSets graph.Bytes) (scheduler.Result, error) {
	orders := []func(job int) []graph.OpID{p.EarlyUpdates, p.GraphOrder}
	if p.options.KeepOrder {
		orders = orders[1:]
	}
	var refused error
	for _, order := range orders {
		result, err := p.better(order, workingSets)
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
		p.Stage(scheduler.Planning)
	}
	return scheduler.Result{}, refused
}

// better plans by a sequence that takes no heed of how much memory there is, and, if no prefix of it reaches a target,
// by one that does. It returns the plan that takes less time.
func (p *planner) better(order func(job int) []graph.OpID, workingSets graph.Bytes) (scheduler.Result, error) {
	h := p.search(order, false)
	first, err := p.tighten(h, workingSets)
	if !h.hasMissed() || p.options.NoRecompute || p.Spent() || err != nil && !errors.Is(err, scheduler.ErrNoPlan) {
		return first, err
	}
	p.Stage(scheduler.Planning)
	second, other := p.tighten(p.search(order, true), workingSets)
	if errors.Is(other, scheduler.ErrNoPlan) || err == nil && other == nil && p.took(&first) <= p.took(&second) {
		return first, err
	}
	return second, other
}

// searcher looks for drafts.
type searcher interface {
	// reach looks for drafts that need at most the target and lose as little time as can be found, or else for the
	// lowest.
	reach(target graph.Bytes)
	bestTrial() *trial // by the last reach; nil: it did not come so far
	hasMissed() bool   // a reach was above its target with all that recomputation can do
}

// search looks for drafts with the ops in some order. If tight, what is recomputed is chosen for the first target.
func (p *planner) search(order func(job int) []graph.OpID, tight bool) searcher {
	if p.Request.Together && len(p.Request.Jobs) > 1 {
		return newTogether(p.Session, p.options, order, tight)
	}
	h := newHybrid(p.Session, p.options, order, allGroups(p.Session))
	h.tight = tight
	return h
}

// took is what the jobs' iterations take, by weight.
func (p *planner) took(result *scheduler.Result) (sum int64) {
	for i := range result.Jobs {
		sum += int64(iteration(p.Session, result, i)) * int64(p.Request.Jobs[i].Worth())
	}
	return sum
}

// iteration is how long an iteration of job i takes with its present share of the link.
func iteration(s *draft.Session, result *scheduler.Result, i int) time.Duration {
	j := &result.Jobs[i]
	s.Count(8 * len(j.Plan.Steps))
	c := compile.Compile(s.Request.Jobs[i].Graph, j.Plan, j.Layout, compile.Options{Tick: s.Tick})
	out, in := s.Links(i)
	return program.Time(c, program.Durations{Steps: j.Plan.Made, Out: out, In: in}).Iteration
}

// tighten plans for targets and packs, until a plan fits the budget and leaves little of it unused (Complete
// Scheduling, TENSILE Algorithm 3, with packing in the loop). The target is lowered by what a packed plan is over the
// budget, and raised again, half of the way, if a plan that fits leaves too much unused. Of all plans that fit, the one
// that loses least time is kept. No target is below the working sets.
func (p *planner) tighten(h searcher, workingSets graph.Bytes) (scheduler.Result, error) {
	r := &p.Request
	rounds := p.options.MaxRounds
	if rounds == 0 {
		rounds = 12
	}
	target := max(workingSets, r.Budget-r.Budget/packing)
	tooHigh := r.Budget + 1 // the lowest target that did not fit
	var best scheduler.Result
	var lost int64 // by the best
	var last error
	for round := 1; ; round++ {
		p.Search(func() { h.reach(target) })
		found := h.bestTrial()
		if found == nil || p.Spent() && found.peak > target {
			if best.Jobs != nil {
				return best, nil
			}
			return scheduler.Result{}, &scheduler.WorkLimitError{Work: p.Work(), Last: last}
		}
		result, err := p.pack(found.jobs, target)
		if err != nil {
			return scheduler.Result{}, err
		}
		fits := result.Least <= r.Budget
		if fits && (best.Jobs == nil || found.lost < lost) {
			best, lost = result, found.lost
		}
		if p.Spent() || best.Jobs != nil && (round >= enough || !fits || !p.wasteful(&best, lost)) {
			break
		}
		if fits {
			next := target + (min(tooHigh, r.Budget)-target)/2
			if target == next {
				break
			}
			target = next
			continue
		}
		tooHigh = target
		why := "the tightest plan found packs into that"
		if found.peak > target || target <= workingSets || round == rounds {
			_, largest := r.FirstWorkingSets()
			return scheduler.Result{}, &scheduler.OverBudgetError{Need: result.Least, Budget: r.Budget,
				Reason: why + draft.AtSwapLimit(p.Ungroup(found.jobs)) + "; the largest steps alone: " + largest}
		}
		last = &scheduler.OverBudgetError{Need: result.Least, Budget: r.Budget, Reason: why}
		target = max(workingSets, min(target, found.peak)-max(result.Least-r.Budget, r.Budget/least))
		p.Stage(scheduler.Planning)
	}
	if best.Jobs == nil {
		return scheduler.Result{}, &scheduler.WorkLimitError{Work: p.Work(), Last: last}
	}
	best.Rounds = p.Rounds()
	return best, nil
}

// least is the part of the budget by which a target is lowered at least.
const least = 512

// enough is after how many rounds a plan that fits is taken, whatever it leaves unused.
const enough = 4

// wasteful reports whether a plan that loses more than a hundredth of the time leaves more than a fiftieth of the
// budget unused.
func (p *planner) wasteful(result *scheduler.Result, lost int64) bool {
	var took int64
	for i := range p.Request.Jobs {
		took += int64(p.UnplannedTime(i)) * int64(p.Request.Jobs[i].Worth())
	}
	return lost > took/100 && result.Least < p.Request.Budget-p.Request.Budget/50
}

// pack packs drafts with swaps relaxed, or, where that does not fit, as they are: relaxed swaps hold more memory beside
// the peak, and a plan that is full everywhere is hard to pack.
func (p *planner) pack(jobs []*draft.Draft, target graph.Bytes) (scheduler.Result, error) {
	if !p.options.NoRelax {
		result, err := p.Finish(p.Ungroup(jobs), target-target/relaxed)
		if err != nil || result.Least <= p.Request.Budget {
			return result, err
		}
	}
	return p.Finish(p.Ungroup(jobs), 0)
}

// relaxed is the part of a target that relaxed swaps leave free.
const relaxed = 8

// packing is the part of the budget that is left for what packing wastes, to begin with.
const packing = 256
