package scheduler

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"tensile/graph"
	"tensile/peak"
	"tensile/plan"
	"tensile/pool"
	"tensile/program"
)

// tensile plans swaps and recomputations for all jobs until their packed plans fit the budget. A budget that the plain
// plans fit leaves them as they are. Tight plans pack differently well, so where early updates lead to none that fits,
// the order of the graph is tried too.
func tensile(r Request) (Result, error) {
	least, why := workingSets(r)
	if r.Budget > 0 && least > r.Budget {
		return Result{}, &OverBudgetError{least, r.Budget, "the largest steps need it: " + why}
	}
	r.stage(Planning)
	if r.Budget == 0 && r.Lowest {
		return r.lowest()
	}
	plain := r.drafts(graphOrder)
	if r.Budget == 0 || sumOfPeaks(plain) <= r.Budget {
		result, err := r.finish(plain, r.Budget)
		if err != nil || r.Budget == 0 || result.Arena <= r.Budget {
			return result, err
		}
		r.stage(Planning)
	}
	orders := []func(*graph.Graph) []graph.OpID{earlyUpdates, graphOrder}
	if r.Options.KeepOrder {
		orders = orders[1:]
	}
	var refused error
	for _, order := range orders {
		for _, alone := range []bool{r.Options.NoHybrid, true} {
			result, err := r.tighten(order, least, alone)
			if !errors.Is(err, ErrNoPlan) {
				return result, err
			}
			if limit := (*WorkLimitError)(nil); errors.As(err, &limit) {
				limit.Last = cmp.Or(limit.Last, refused)
				return Result{}, limit
			}
			if refused == nil {
				refused = err
			}
			if alone {
				break
			}
			r.stage(Planning)
		}
	}
	return Result{}, refused
}

// tighten plans, packs and lowers the target by what the packed plans lack, until they fit (Complete Scheduling, TENSILE
// Algorithm 3, with packing in the loop). No plan is below least. What is left above the target after swaps that cost no
// time, and unless swaps are to be alone after recomputations planned with them, is forced.
func (r *Request) tighten(order func(*graph.Graph) []graph.OpID, least graph.Bytes, alone bool) (Result, error) {
	h := r.hybrid(order)
	target := max(least, r.Budget-r.Budget/packing)
	rounds := r.Options.MaxRounds
	if rounds == 0 {
		rounds = 12
	}
	var jobs []*draft
	var last error
	for round := 1; ; round++ {
		fits := false
		if !r.search(func() {
			switch {
			case !alone:
				jobs = h.reach(target)
			case jobs == nil:
				jobs = h.plan(0, target)
			case !r.Options.NoSwap:
				swapFreely(jobs, target)
			}
			fits = force(jobs, target, r.Options)
		}) {
			if alone || h.best == nil || h.lowest > target {
				return Result{}, &WorkLimitError{r.work(), last}
			}
			jobs, fits = h.best, true
		}
		final := jobs
		if alone {
			final = clones(jobs) // these are worked on in the next round
		}
		result, err := r.finish(final, target)
		if err != nil || result.Arena <= r.Budget {
			return result, err
		}
		if !fits || target <= least || round == rounds {
			_, why := workingSets(*r)
			last = &OverBudgetError{result.Arena, r.Budget,
				"the tightest plan found packs into that" + limits(jobs) + "; the largest steps alone: " + why}
			return Result{}, last
		}
		if last = (&OverBudgetError{result.Arena, r.Budget, "the tightest plan found packs into that"}); r.meter.spent {
			return Result{}, &WorkLimitError{r.work(), last}
		}
		target = max(least, target-(result.Arena-r.Budget))
		r.stage(Planning)
	}
}

func clones(jobs []*draft) []*draft {
	all := make([]*draft, len(jobs))
	for i, d := range jobs {
		all[i] = d.clone()
	}
	return all
}

// finish relaxes drafts up to the target, or up to their peaks if it is 0, writes and packs them.
func (r *Request) finish(jobs []*draft, target graph.Bytes) (Result, error) {
	if target == 0 {
		target = sumOfPeaks(jobs)
	}
	result, err := r.place(r.relaxed(jobs, target))
	if err != nil {
		return Result{}, err
	}
	result.Rounds = *r.rounds
	for i, d := range jobs {
		result.Jobs[i].Decisions = d.decisions()
		if r.Explain {
			result.Jobs[i].Decisions = append(result.Jobs[i].Decisions, d.kept()...)
		}
	}
	return result, nil
}

func (r *Request) stage(s Stage) {
	if r.Stage != nil {
		r.Stage(s)
	}
}

// drafts begins a draft per job, with the jobs' shares of the link.
func (r *Request) drafts(order func(*graph.Graph) []graph.OpID) []*draft {
	jobs := make([]*draft, len(r.Jobs))
	for i := range r.Jobs {
		r.meter.count(4 * len(r.Jobs[i].Graph.Ops))
		jobs[i] = r.draft(i, firstSteps(order(r.Jobs[i].Graph)))
	}
	return jobs
}

func (r *Request) draft(i int, steps []step) *draft {
	s := r.shares[i]
	d := &draft{wiring: r.wirings[i], meter: r.meter, job: &r.Jobs[i], align: r.Align, steps: steps,
		out: r.Out.Share(s.Out, Whole), in: r.In.Share(s.In, Whole), earlyOut: !r.Options.LateOut, oneChannel: r.Options.OneChannel}
	d.begin()
	return d
}

// relaxed writes the jobs' plans with swaps relaxed up to the peaks, and what the target leaves above them: to each job
// by its weight.
func (r *Request) relaxed(jobs []*draft, target graph.Bytes) []*plan.Plan {
	var weights graph.Bytes
	for _, w := range jobs {
		weights += graph.Bytes(w.job.weight())
	}
	spare := max(0, target-sumOfPeaks(jobs))
	var plans []*plan.Plan
	for _, d := range jobs {
		if !r.Options.NoRelax {
			_, peak := d.peak()
			d.relax(peak + spare*graph.Bytes(d.job.weight())/weights)
		}
		plans = append(plans, d.plan(r.Policy))
	}
	return plans
}

// packing is the part of the budget that is left for what packing wastes, to begin with.
const packing = 256

// nearly is the part of its peak by which a packed plan may be higher where no budget asks for less.
const nearly = 128

// place packs plans and sums them up. Each is packed until it is no higher than its peak and an even share of what the
// budget leaves above all peaks; if that is not enough for all, each as low as it gets.
func (r *Request) place(plans []*plan.Plan) (Result, error) {
	r.stage(Packing)
	*r.rounds++
	var result Result
	twins := r.twins(plans)
	for i, p := range plans {
		p.Graph = r.digests[i]
		if twin := twins[i]; twin != i {
			f := result.Jobs[twin].Footprint
			result.Jobs = append(result.Jobs, Scheduled{Plan: p, Footprint: f})
			result.SlotPeak += f.Peak
			continue
		}
		r.meter.count(8 * (len(p.Steps) + len(p.Moves)))
		if err := plan.Validate(r.Jobs[i].Graph, p); err != nil {
			panic(fmt.Sprintf("scheduler: %v\n%s", err, p.Text(r.Jobs[i].Graph)))
		}
		f := peak.Of(r.Jobs[i].Graph, p)
		result.Jobs = append(result.Jobs, Scheduled{Plan: p, Footprint: f})
		result.SlotPeak += f.Peak
	}
	spare := max(0, r.Budget-result.SlotPeak) / graph.Bytes(max(1, len(plans)))
	for i := range result.Jobs {
		j := &result.Jobs[i]
		enough := min(r.Budget, j.Footprint.Peak+spare)
		if twin := twins[i]; twin != i {
			j.Layout = result.Jobs[twin].Layout
			result.Arena += j.Layout.Arena
			continue
		}
		if r.Budget == 0 && r.Lowest {
			enough = j.Footprint.Peak + j.Footprint.Peak/nearly
		}
		if err := r.pack(i, j, enough); err != nil {
			return Result{}, err
		}
		result.Arena += j.Layout.Arena
	}
	lowered := make(map[int]*program.Layout)
	for i := range result.Jobs {
		j := &result.Jobs[i]
		if result.Arena <= r.Budget || r.Budget == 0 || j.Layout.Arena > j.Footprint.Peak+spare || j.Layout.Arena == j.Layout.Load {
			continue
		}
		result.Arena -= j.Layout.Arena
		if lower := lowered[twins[i]]; lower != nil {
			j.Layout = lower
			result.Arena += j.Layout.Arena
			continue
		}
		if err := r.pack(i, j, 0); err != nil {
			return Result{}, err
		}
		lowered[twins[i]] = j.Layout
		result.Arena += j.Layout.Arena
	}
	return result, nil
}

// twins returns for each plan the first one that moves and executes the same of the same graph, which may be itself: both
// have one footprint and one layout. Copies of a model most often share a few plans.
func (r *Request) twins(plans []*plan.Plan) []int {
	twins := make([]int, len(plans))
	var different []int
	for i, p := range plans {
		k := slices.IndexFunc(different, func(j int) bool {
			q := plans[j]
			r.meter.count(4)
			return r.Jobs[i].Graph == r.Jobs[j].Graph && slices.Equal(p.Moves, q.Moves) && slices.Equal(p.Steps, q.Steps) && slices.Equal(p.Entry, q.Entry)
		})
		if twins[i] = i; k >= 0 {
			twins[i] = different[k]
		} else {
			different = append(different, i)
		}
	}
	return twins
}

// pack packs the plan of job i until it is no higher than enough.
func (r *Request) pack(i int, j *Scheduled, enough graph.Bytes) (err error) {
	stopped := false
	o := pool.Options{Method: r.Options.Pack, Enough: int64(enough), Stop: func() bool {
		stopped = stopped || r.meter.stop != nil && r.meter.stop()
		return stopped
	}}
	j.Layout, err = program.PlaceBy(r.Jobs[i].Graph, j.Plan, r.Align, o)
	if stopped {
		panic(workStopped{})
	}
	if err == nil {
		r.meter.count(j.Layout.Work)
	}
	return err
}
