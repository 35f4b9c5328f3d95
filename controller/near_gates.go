package controller

import (
	"slices"
	"time"

	"tensile/graph"
	"tensile/plan/program"
	"tensile/scheduler"
	"tensile/scheduler/planner"
	"tensile/wire"
)

// noticeable is the part of their time without plans from which on what jobs lose by these is worth planning anew.
const noticeable = 100

// nearByGates is near for jobs that share memory by gates. All keep their plans. A job without one gets that of an
// equal job; where there is none, it alone is planned for, within what the bases of the others leave. It returns nil
// where most jobs have no plan or these plans do not fit together, and after a departure where plans lose time, as what
// is free now may save that.
func (w *work) nearByGates(r scheduler.Request) []PlannedJob {
	w = w.profiled()
	layouts := make([]*ProvenLayout, len(r.Jobs))
	come := 0
	for i := range r.Jobs {
		if layouts[i] = w.plan.Jobs[i].Has; layouts[i] == nil {
			come++
		}
	}
	if 2*come > len(r.Jobs) || come == 0 && w.loses(&r, layouts) {
		return nil
	}
	for i, l := range layouts {
		if l != nil {
			continue
		}
		if like := w.like(&r, layouts, i); like != nil {
			c := &w.plan.Jobs[i]
			layouts[i] = like.as(c.Spec.Name, c.Epoch)
		} else if layouts[i] = w.beside(r, layouts, i); layouts[i] == nil {
			return nil
		}
	}
	if !w.fit(&r, layouts) {
		return nil
	}
	rates, err := w.rates(&r, layouts)
	if err != nil {
		return nil
	}
	jobs := make([]PlannedJob, len(r.Jobs))
	for i, l := range layouts {
		j := &r.Jobs[i]
		p := PlannedJob{Latencies: scheduler.ColdStart, Out: r.Out, In: r.In, Speed: rates[i]}
		if j.Measured {
			p.Latencies = scheduler.Updated
		}
		if w.plan.Weigh {
			p.Alone = total(j.Latency)
			takes := float64(l.unplanned(j.Latency)) / max(1e-9, rates[i])
			p.Slowdown = takes / float64(max(1, p.Alone))
		}
		if w.plan.Jobs[i].Has == nil {
			p.Layout = l.expecting(rates[i])
		}
		jobs[i] = p
	}
	return jobs
}

// profiled is the same errand for candidates that have the profiles that were made for them.
func (w *work) profiled() *work {
	own, plan := *w, *w.plan
	own.plan, plan.Jobs = &plan, slices.Clone(plan.Jobs)
	for i, p := range w.answer.New {
		plan.Jobs[i].Profile = &p
	}
	return &own
}

// loses reports whether iterations take noticeably longer by layouts than without plans, in the sum by weight.
func (w *work) loses(r *scheduler.Request, layouts []*ProvenLayout) bool {
	var alone, lost time.Duration
	for i, l := range layouts {
		worth, made := time.Duration(r.Jobs[i].Worth()), l.Wire.Plan.Made
		took := program.Time(l.program, program.Durations{Steps: made, Out: r.Out, In: r.In}).Iteration
		unplanned := l.unplanned(made)
		alone, lost = alone+worth*unplanned, lost+worth*max(0, took-unplanned)
	}
	return lost > alone/noticeable
}

// unplanned is how long an iteration takes without a plan: what was said of that when this one was made, or what steps
// take.
func (l *ProvenLayout) unplanned(steps []time.Duration) time.Duration {
	if l.Wire.Reasons == nil {
		return total(steps)
	}
	return l.Wire.Reasons.Unplanned
}

// like returns the layout of a job that is equal to a candidate, nil if none has one that is up to date.
func (w *work) like(r *scheduler.Request, layouts []*ProvenLayout, candidate int) *ProvenLayout {
	c, peer := &w.plan.Jobs[candidate], w.peerOf(r, candidate)
	for i, l := range layouts {
		if l != nil && w.peerOf(r, i) == peer && fresh(c, l, r.Jobs[candidate].Latency) {
			return l
		}
	}
	return nil
}

// as is the same layout for another job, in an epoch.
func (l *ProvenLayout) as(job string, epoch int64) *ProvenLayout {
	renamed, of := *l, *l.Wire
	renamed.program = l.program.As(job, epoch)
	of.Plan = renamed.program.Plan
	renamed.Wire = &of
	return &renamed
}

// expecting is the same layout with the speed that is expected of its job.
func (l *ProvenLayout) expecting(speed float64) *ProvenLayout {
	if l.Wire.Reasons == nil {
		return l
	}
	told, of, reasons := *l, *l.Wire, *l.Wire.Reasons
	reasons.Speed, of.Reasons, told.Wire = speed, &reasons, &of
	return &told
}

// beside makes the plan of one candidate within what the layouts of others leave of the budgets; nil: there is none.
func (w *work) beside(r scheduler.Request, layouts []*ProvenLayout, candidate int) *ProvenLayout {
	one, plan := *w, *w.plan
	one.plan, one.jobs, plan.Jobs = &plan, w.jobs[candidate:candidate+1], w.plan.Jobs[candidate:candidate+1]
	sub := r
	sub.Jobs = r.Jobs[candidate : candidate+1]
	for i, l := range layouts {
		if l != nil {
			sub.Budget -= l.claim().Base
			sub.HostBudget -= l.Host + w.plan.Jobs[i].Beside
		}
	}
	if r.HostBudget == 0 {
		sub.HostBudget = 0
	} else if sub.HostBudget <= 0 {
		return nil
	}
	if sub.Budget <= 0 {
		return nil
	}
	planned, err := one.together(sub)
	if err != nil {
		return nil
	}
	return planned[0].Layout
}

// fit reports whether layouts fit the budgets together.
func (w *work) fit(r *scheduler.Request, layouts []*ProvenLayout) bool {
	var claims Together
	var host graph.Bytes
	for i, l := range layouts {
		claims, host = claims.With(l.claim()), host+l.Host+w.plan.Jobs[i].Beside
	}
	return claims.Bytes() <= r.Budget && (r.HostBudget == 0 || host <= r.HostBudget)
}

// rates are how fast jobs are expected to get on by layouts, as shares of their speeds alone and without a plan. Only
// where they are compared with those on other devices they are worth the time of more than a guess.
func (w *work) rates(r *scheduler.Request, layouts []*ProvenLayout) ([]float64, error) {
	courses := make([]planner.Course, len(layouts))
	for i, l := range layouts {
		j := &r.Jobs[i]
		same := func(o int) bool {
			return sameProgram(l.Wire, layouts[o].Wire) && slices.Equal(j.Latency, r.Jobs[o].Latency)
		}
		at := 0
		for at < i && !same(at) {
			at++
		}
		if at < i {
			courses[i] = courses[at]
		} else {
			courses[i] = w.On.Course(l.program, program.Durations{Steps: takes(&w.plan.Jobs[i], l, j.Latency),
				Out: r.Out, In: r.In})
		}
		courses[i].Alone, courses[i].Weight = l.unplanned(j.Latency), j.Worth()
	}
	if w.plan.Weigh {
		return w.On.Rates(courses, r.Budget)
	}
	return w.On.Guess(courses, r.Budget)
}

// sameProgram reports whether two layouts become the same program but for the names of their jobs.
func sameProgram(a, b *wire.Layout) bool {
	p, q := a.Plan, b.Plan
	return p.Graph == q.Graph && a.Arena == b.Arena && slices.Equal(a.Offsets, b.Offsets) &&
		slices.Equal(a.Scratch, b.Scratch) && slices.Equal(p.Steps, q.Steps) && slices.Equal(p.Moves, q.Moves) &&
		slices.Equal(p.Entry, q.Entry)
}
