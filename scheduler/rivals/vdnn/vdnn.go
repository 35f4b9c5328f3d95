package vdnn

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"tensile/scheduler/rivals/each"
	"tensile/scheduler/rivals/layer"

	"tensile/graph"
	"tensile/peak"
	"tensile/plan"
	"tensile/scheduler"
	"tensile/scheduler/draft"
)

// Options choose among the policies of vDNN.
type Options struct {
	Offload Offload
	Keep    bool // free what the paper frees, and nothing else before the iteration ends
}

// Static returns a policy that offloads the same whatever the budget, with the fastest convolutions, or with those of
// least scratch where the plans do not fit (III-C: each static policy is run with either).
func Static(o Options) func(*draft.Session) (scheduler.Result, error) {
	return func(s *draft.Session) (scheduler.Result, error) {
		if err := each.NoSwapLimit(s); err != nil {
			return scheduler.Result{}, err
		}
		s.Stage(scheduler.Planning)
		choices := []choice{fastest, leastScratch}
		if s.Request.Lowest && s.Request.Budget == 0 || !several(&s.Request) {
			choices = choices[1:]
		}
		return firstFitting(s, choices, func(i int, c choice) *plan.Plan {
			return o.plan(s, i, variants(&s.Request.Jobs[i], c))
		})
	}
}

// Dynamic returns the policy vdnn-dyn: the first trial that fits the job's part of the budget (III-C).
func Dynamic(o Options) func(*draft.Session) (scheduler.Result, error) {
	return func(s *draft.Session) (scheduler.Result, error) {
		r := &s.Request
		if err := each.NoSwapLimit(s); err != nil {
			return scheduler.Result{}, err
		}
		trials := o.trials()
		if r.Budget == 0 {
			trial := trials[1] // no offload: all fits
			if r.Lowest {
				trial = trials[0]
			}
			return alike(s, trial)
		}
		asked := make([]askedFor, len(r.Jobs))
		result, err := each.Plan(s, func(i int, part each.Part) (*plan.Plan, error) {
			asked[i].startPart(trials, part)
			return firstFit(s, i, trials, &asked[i])
		})
		if errors.Is(err, scheduler.ErrNoPlan) { // with other parts of the budget it may fit
			return alike(s, trials[0])
		}
		if err == nil {
			decide(s, &result)
		}
		return result, err
	}
}

// alike plans all jobs by one trial.
func alike(s *draft.Session, t trial) (scheduler.Result, error) {
	return firstFitting(s, []trial{t}, func(i int, t trial) *plan.Plan { return t.plan(s, i, s.Request.Budget) })
}

// firstFitting returns the first plans of some choices that fit the budget.
func firstFitting[T any](s *draft.Session, choices []T, write func(int, T) *plan.Plan) (scheduler.Result, error) {
	r := &s.Request
	var need graph.Bytes
	for _, c := range choices {
		plans := make([]*plan.Plan, len(r.Jobs))
		for i := range r.Jobs {
			plans[i] = write(i, c)
		}
		result, err := s.Place(plans)
		if err != nil {
			return scheduler.Result{}, err
		}
		if r.Budget == 0 || result.Least <= r.Budget {
			decide(s, &result)
			return result, nil
		}
		if need == 0 || result.Least < need {
			need = result.Least
		}
		s.Stage(scheduler.Planning)
	}
	return scheduler.Result{}, &scheduler.OverBudgetError{Need: need, Budget: r.Budget,
		Reason: fmt.Sprintf("what policy %s leaves packs into that; policy tensile goes lower", r.Policy)}
}

// trial is one of the trials of vdnn-dyn.
type trial struct {
	Options
	choice choice
}

// trials are those of III-C, in their order. Trial 1 tells whether the network can be trained at all, and is the last
// too: it is taken if nothing faster fits.
func (o Options) trials() []trial {
	with := func(which Offload, c choice) trial { return trial{Options{which, o.Keep}, c} }
	return []trial{
		with(All, leastScratch),
		with(Nothing, fastest), with(Conv, fastest), with(All, fastest),
		with(Conv, greedy), with(All, greedy),
		with(All, leastScratch),
	}
}

// askedFor is what was asked for a job last.
type askedFor struct {
	part   each.Part
	trial  int         // the trial that was taken
	margin graph.Bytes // that the variants of a greedy trial leave free
	again  int         // how often it has got a larger one
}

// startPart is told of the part that is asked for: another one begins with the first trial; less capacity says that
// what fitted does not pack.
func (a *askedFor) startPart(trials []trial, part each.Part) {
	if part.Bytes != a.part.Bytes {
		*a = askedFor{}
	} else if over := a.part.Capacity - part.Capacity; over > 0 {
		a.packs(trials, over)
	}
	a.part = part
}

// packs goes on after plans whose arena was over by some bytes: a greedy trial chooses with a margin, twice; others
// make way for the next.
func (a *askedFor) packs(trials []trial, over graph.Bytes) {
	const most = 2
	if trials[a.trial].choice == greedy && a.again < most {
		a.margin, a.again = 4*(a.margin+over), a.again+1
		return
	}
	a.skip(trials)
}

// skip goes on to the next trial.
func (a *askedFor) skip(trials []trial) { *a = askedFor{a.part, min(a.trial+1, len(trials)-1), 0, 0} }

// firstFit returns the plan of the first trial, from the one asked for on, that fits the capacity, and notes which it
// is. The error is a *scheduler.OverBudgetError if trial 1 does not fit.
func firstFit(s *draft.Session, i int, trials []trial, a *askedFor) (*plan.Plan, error) {
	r, capacity := &s.Request, a.part.Capacity
	least := trials[0].plan(s, i, capacity)
	if peak := peakOf(s, i, least); peak > capacity {
		return nil, &scheduler.OverBudgetError{Need: r.Budget + peak - capacity, Budget: r.Budget,
			Reason: fmt.Sprintf("job %s needs %v of it by policy %s; policy tensile goes lower", r.Jobs[i].Name, peak,
				r.Policy)}
	}
	for a.trial = max(1, a.trial); a.trial < len(trials)-1; a.skip(trials) {
		if p := trials[a.trial].plan(s, i, capacity-a.margin); peakOf(s, i, p) <= capacity {
			return p, nil
		}
	}
	return least, nil
}

// plan writes the plan of a trial for job i.
func (t trial) plan(s *draft.Session, i int, capacity graph.Bytes) *plan.Plan {
	j := &s.Request.Jobs[i]
	if t.choice != greedy {
		return t.Options.plan(s, i, variants(j, t.choice))
	}
	least := t.Options.plan(s, i, variants(j, leastScratch))
	return t.Options.plan(s, i, fitting(s, i, least, capacity))
}

// plan writes the plan of job i with these variants of its ops.
func (o Options) plan(s *draft.Session, i int, variants []int) *plan.Plan {
	g := s.Request.Jobs[i].Graph
	p := s.Draft(i, draft.FirstSteps(s.GraphOrder(i)), draft.Style{Variants: variants}).Plan(s.Request.Policy)
	s.Count(32 * len(g.Ops))
	layers, of := layer.Find(g)
	if o.Keep {
		restrictFrees(g, p, layers, of)
	}
	if o.Offload != Nothing {
		offload(g, p, layers, of, o.Offload)
	}
	return p
}

// peakOf is the peak of a plan of job i.
func peakOf(s *draft.Session, i int, p *plan.Plan) graph.Bytes {
	s.Count(4 * (len(p.Steps) + len(p.Moves)))
	return peak.Of(s.Request.Jobs[i].Graph, p).Peak
}

// choice says which variants ops take: of convolutions, the paper's algorithms.
type choice int

const (
	fastest      choice = iota // performance-optimal
	leastScratch               // memory-optimal
	greedy                     // the fastest that fits beside what is on the device
)

// several reports whether an op of the request has more than one variant.
func several(r *scheduler.Request) bool {
	return slices.ContainsFunc(r.Jobs, func(j scheduler.Job) bool {
		return slices.ContainsFunc(j.Variants, func(of []scheduler.Variant) bool { return len(of) > 1 })
	})
}

// variants returns the variants of a job's ops by a choice; nil: each has one.
func variants(j *scheduler.Job, c choice) []int {
	if j.Variants == nil {
		return nil
	}
	chosen := make([]int, len(j.Variants))
	for op := range j.Variants {
		id := graph.OpID(op)
		for k := 1; k < len(j.Variants[op]); k++ {
			if better(j.Variant(id, k), j.Variant(id, chosen[op]), c) {
				chosen[op] = k
			}
		}
	}
	return chosen
}

// better reports whether variant a is to be taken before b.
func better(a, b scheduler.Variant, c choice) bool {
	time, scratch := cmp.Compare(a.Latency, b.Latency), cmp.Compare(a.Scratch, b.Scratch)
	if c == leastScratch {
		return cmp.Or(scratch, time) < 0
	}
	return cmp.Or(time, scratch) < 0
}

// fitting returns for each op of job i the fastest variant that fits beside what a plan has on the device then, or else
// that of least scratch (III-C: each layer starts at its fastest algorithm and steps down).
func fitting(s *draft.Session, i int, least *plan.Plan, capacity graph.Bytes) []int {
	j := &s.Request.Jobs[i]
	chosen := variants(j, leastScratch)
	slots := peak.Of(j.Graph, least).Slots
	s.Count(8 * len(slots))
	for op := range chosen {
		room := capacity - slots[op] + least.Steps[op].Scratch
		id := graph.OpID(op)
		for k := range j.Variants[op] {
			if v := j.Variant(id, k); v.Scratch <= room && better(v, j.Variant(id, chosen[op]), fastest) {
				chosen[op] = k
			}
		}
	}
	return chosen
}
