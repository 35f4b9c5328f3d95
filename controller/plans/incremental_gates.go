package plans

import (
	"slices"
	"time"

	"tensile/controller/memory"
	"tensile/graph"
	"tensile/plan/program"
	"tensile/scheduler"
	"tensile/scheduler/planner"
	"tensile/wire"
)

// noticeable is the divisor of the time without plans that gives the smallest loss worth planning anew for.
const noticeable = 100

// replanByGates is replanIncrementally for jobs that share memory by gates. All jobs keep their plans. A job without a
// plan gets that of an equal job. Where there is none, it alone is planned for, within what the bases of the others
// leave. It returns nil where most jobs have no plan or these plans do not fit together, and after a departure where
// plans lose time, as the free memory may save that.
func (w *planJob) replanByGates(r scheduler.Request) []PlannedJob {
	w = w.withNewProfiles()
	layouts := make([]*ProvenLayout, len(r.Jobs))
	come := 0
	for i := range r.Jobs {
		if layouts[i] = w.message.Jobs[i].Current; layouts[i] == nil {
			come++
		}
	}
	if 2*come > len(r.Jobs) || come == 0 && w.losesTime(&r, layouts) {
		return nil
	}
	for i, l := range layouts {
		if l != nil {
			continue
		}
		if like := w.equalLayout(&r, layouts, i); like != nil {
			c := &w.message.Jobs[i]
			layouts[i] = like.renamed(c.Spec.Name, c.Epoch)
		} else if layouts[i] = w.planBeside(r, layouts, i); layouts[i] == nil {
			return nil
		}
	}
	if !w.fitTogether(&r, layouts) {
		return nil
	}
	rates, err := w.expectedSpeeds(&r, layouts)
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
		if w.message.WantSlowdowns {
			p.Alone = TotalTime(j.Latency)
			takes := float64(l.unplannedTime(j.Latency)) / max(1e-9, rates[i])
			p.Slowdown = takes / float64(max(1, p.Alone))
		}
		if w.message.Jobs[i].Current == nil {
			p.Layout = l.withSpeed(rates[i])
		}
		jobs[i] = p
	}
	return jobs
}

// withNewProfiles is the same job for candidates that have the profiles which were made for them.
func (w *planJob) withNewProfiles() *planJob {
	own, plan := *w, *w.message
	own.message, plan.Jobs = &plan, slices.Clone(plan.Jobs)
	for i, p := range w.result.NewProfiles {
		plan.Jobs[i].Profile = &p
	}
	return &own
}

// losesTime reports whether iterations take noticeably longer by layouts than without plans, in the weighted sum.
func (w *planJob) losesTime(r *scheduler.Request, layouts []*ProvenLayout) bool {
	var alone, lost time.Duration
	for i, l := range layouts {
		worth, made := time.Duration(r.Jobs[i].Worth()), l.Wire.Plan.Made
		took := program.Time(l.program, program.Durations{Steps: made, Out: r.Out, In: r.In}).Iteration
		unplanned := l.unplannedTime(made)
		alone, lost = alone+worth*unplanned, lost+worth*max(0, took-unplanned)
	}
	return lost > alone/noticeable
}

// unplannedTime is how long an iteration takes without a plan: as it was computed when this plan was made, or else the
// sum of the steps.
func (l *ProvenLayout) unplannedTime(steps []time.Duration) time.Duration {
	if l.Wire.Reasons == nil {
		return TotalTime(steps)
	}
	return l.Wire.Reasons.Unplanned
}

// equalLayout returns the layout of a job that is equal to a candidate. nil: none has one that is up to date.
func (w *planJob) equalLayout(r *scheduler.Request, layouts []*ProvenLayout, candidate int) *ProvenLayout {
	c, peer := &w.message.Jobs[candidate], w.classKeyOf(r, candidate)
	for i, l := range layouts {
		if l != nil && w.classKeyOf(r, i) == peer && isUpToDate(c, l, r.Jobs[candidate].Latency) {
			return l
		}
	}
	return nil
}

// renamed is the same layout for another job, in an epoch.
func (l *ProvenLayout) renamed(job string, epoch int64) *ProvenLayout {
	renamed, of := *l, *l.Wire
	renamed.program = l.program.Rename(job, epoch)
	of.Plan = renamed.program.Plan
	renamed.Wire = &of
	return &renamed
}

// withSpeed is the same layout with the speed that is expected of its job.
func (l *ProvenLayout) withSpeed(speed float64) *ProvenLayout {
	if l.Wire.Reasons == nil {
		return l
	}
	told, of, reasons := *l, *l.Wire, *l.Wire.Reasons
	reasons.Speed, of.Reasons, told.Wire = speed, &reasons, &of
	return &told
}

// planBeside makes the plan of one candidate within what the layouts of others leave of the budgets. nil: there is
// none.
func (w *planJob) planBeside(r scheduler.Request, layouts []*ProvenLayout, candidate int) *ProvenLayout {
	one, plan := *w, *w.message
	one.message, one.jobs, plan.Jobs = &plan, w.jobs[candidate:candidate+1], w.message.Jobs[candidate:candidate+1]
	sub := r
	sub.Jobs = r.Jobs[candidate : candidate+1]
	for i, l := range layouts {
		if l != nil {
			sub.Budget -= l.ClaimOrArena().Base
			sub.HostBudget -= l.Host + w.message.Jobs[i].HostExtra
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
	planned, err := one.planTogether(sub)
	if err != nil {
		return nil
	}
	return planned[0].Layout
}

// fitTogether reports whether layouts fit the budgets together.
func (w *planJob) fitTogether(r *scheduler.Request, layouts []*ProvenLayout) bool {
	var claims memory.Sum
	var host graph.Bytes
	for i, l := range layouts {
		claims, host = claims.Add(l.ClaimOrArena()), host+l.Host+w.message.Jobs[i].HostExtra
	}
	return claims.Bytes() <= r.Budget && (r.HostBudget == 0 || host <= r.HostBudget)
}

// expectedSpeeds are the speeds that jobs are expected to have by layouts, as shares of their speeds alone and without
// a plan. They are worth the time of more than a guess only where they are compared with those on other devices.
func (w *planJob) expectedSpeeds(r *scheduler.Request, layouts []*ProvenLayout) ([]float64, error) {
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
			courses[i] = w.Device.Course(l.program, program.Durations{Steps: stepTimes(&w.message.Jobs[i], l,
				j.Latency),
				Out: r.Out, In: r.In})
		}
		courses[i].Alone, courses[i].Weight = l.unplannedTime(j.Latency), j.Worth()
	}
	if w.message.WantSlowdowns {
		return w.Device.Rates(courses, r.Budget)
	}
	return w.Device.Guess(courses, r.Budget)
}

// sameProgram reports whether two layouts become the same program but for the names of their jobs.
func sameProgram(a, b *wire.Layout) bool {
	p, q := a.Plan, b.Plan
	return p.Graph == q.Graph && a.Arena == b.Arena && slices.Equal(a.Offsets, b.Offsets) &&
		slices.Equal(a.Scratch, b.Scratch) && slices.Equal(p.Steps, q.Steps) && slices.Equal(p.Moves, q.Moves) &&
		slices.Equal(p.Entry, q.Entry)
}
