package controller

import (
	"fmt"
	"reflect"
	"slices"
	"time"

	"tensile/cost"
	"tensile/graph"
	"tensile/internal/text"
	"tensile/peak"
	"tensile/program"
	"tensile/scheduler"
	"tensile/wire"
)

// planned is what a job would change to.
type planned struct {
	job    *job
	layout *layout // nil: what it has is the same
	phase  string
	out    cost.Link // the job's share of the link
	in     cost.Link
}

// schedule plans for jobs together and proves the plans.
func (m *Machine) schedule(jobs []*job) ([]planned, error) {
	r := scheduler.Request{Policy: m.config.Policy, Budget: m.config.Budget, Out: m.config.Out, In: m.config.In,
		Align: m.config.Align, Options: m.config.Options}
	for _, j := range jobs {
		r.Jobs = append(r.Jobs, m.request(j))
	}
	result, err := scheduler.Schedule(r, m.config.Stop)
	if err != nil {
		return nil, err
	}
	plans := make([]planned, len(jobs))
	for i, s := range result.Jobs {
		plans[i].job = jobs[i]
		l, err := prove(jobs[i].graph, m.config.Align, &wire.Layout{Plan: s.Plan, Offsets: s.Layout.Offsets, Scratch: s.Layout.Scratch, Arena: s.Layout.Arena})
		if err != nil {
			return nil, fmt.Errorf("the plan of job %s is wrong, please report this: %w", jobs[i].record.Spec.Name, err)
		}
		if last := jobs[i].newest(); last == nil || !same(last.wire, l.wire) {
			plans[i].layout = l
		}
		plans[i].phase, plans[i].out, plans[i].in = s.Phase, s.Out, s.In
	}
	return plans, nil
}

// request is a job as the scheduler takes it.
func (m *Machine) request(j *job) scheduler.Job {
	return scheduler.Job{Name: j.record.Spec.Name, Epoch: j.record.Epoch + 1, Graph: j.graph,
		Latency: j.latency, Slack: j.slack(), Scratch: j.profile.Scratch, Variant: j.profile.Variant,
		Measured: j.learnt, Weight: j.record.Spec.Priority, MaxSwapRate: j.record.Spec.SwapRate}
}

// prove returns a layout whose program was checked.
func prove(g *graph.Graph, align graph.Bytes, w *wire.Layout) (*layout, error) {
	placed := program.Layout{Offsets: w.Offsets, Scratch: w.Scratch, Arena: w.Arena, Align: align}
	proven, err := program.Prove(g, w.Plan, &placed, program.Options{})
	if err != nil {
		return nil, err
	}
	return &layout{wire: w, program: proven.Program(), peak: peak.Of(g, w.Plan).Peak}, nil
}

// same reports whether two layouts have a job do the same.
func same(a, b *wire.Layout) bool {
	p, q := *a.Plan, *b.Plan
	p.Epoch, p.Made, q.Epoch, q.Made = 0, nil, 0, nil
	return a.Arena == b.Arena && reflect.DeepEqual(a.Offsets, b.Offsets) && reflect.DeepEqual(a.Scratch, b.Scratch) && reflect.DeepEqual(p, q)
}

// adopt makes plans the newest of their jobs.
func (m *Machine) adopt(plans []planned, reason string) {
	m.changed = true
	for _, p := range plans {
		p.job.assumed, p.job.reports = p.job.latencySum(), 0
		p.job.record.Device = m.config.Device
		if m.config.Limited {
			p.job.record.Link = wire.Rates{Out: p.out.Rate, In: p.in.Rate}
		}
		if p.layout != nil {
			p.job.record.Latencies = p.phase
			p.job.plan(p.layout, reason)
		}
	}
}

// improve plans again for all jobs, and adopts the plans if that is worth the time of the transitions, or if the jobs have
// to shrink.
func (m *Machine) improve(reason string) {
	jobs := m.active()
	if len(jobs) == 0 || m.complete() != nil {
		return
	}
	for _, j := range jobs {
		j.assumed, j.reports = j.latencySum(), 0
	}
	plans, err := m.schedule(jobs)
	if err != nil {
		if m.noPlans != err.Error() { // jobs that cannot shrink would say so with every drift
			m.noPlans = err.Error()
			m.log("no new plans after %s: %v", reason, err)
		}
		return
	}
	m.noPlans = ""
	if m.overfull() {
		m.adopt(plans, reason)
		return
	}
	gain, transition := m.gain(plans)
	if transition == 0 || gain <= transition {
		return
	}
	m.log("new plans: %s; they gain %v over the next iterations, the transition takes %v", reason, text.Duration(gain), text.Duration(transition))
	m.adopt(plans, reason)
}

// overfull reports whether the newest plans of all jobs do not fit the budget together, which was larger before.
func (m *Machine) overfull() bool {
	var sum graph.Bytes
	for _, j := range m.active() {
		if l := j.newest(); l != nil {
			sum += l.wire.Arena
		}
	}
	return m.config.Budget > 0 && sum > m.config.Budget
}

// rebudget plans again for all jobs if a controller before this one had another budget.
func (m *Machine) rebudget() {
	live := slices.DeleteFunc(slices.Clone(m.jobs), func(j *job) bool { return j.record.Phase.Over() })
	other := slices.IndexFunc(live, func(j *job) bool { return j.record.Budget != m.config.Budget })
	if other < 0 {
		return
	}
	change := fmt.Sprintf("the budget is %s, and was %s", words(m.config.Budget), words(live[other].record.Budget))
	m.log("%s: all jobs are planned for again", change)
	for _, j := range live {
		j.record.Budget = m.config.Budget
	}
	if m.overfull() {
		m.shrink(change)
	} else {
		m.improve(change)
	}
	for _, j := range m.waiting() {
		if err := m.possible([]*job{j}); err != nil {
			j.record.Phase, j.record.Why = wire.Broken, err.Error()
			m.log("%v", err)
		}
	}
}

// shrink plans for less than jobs have. Those that have nothing yet wait again if they do not fit.
func (m *Machine) shrink(reason string) {
	plans, err := m.schedule(m.active())
	if err != nil {
		for _, j := range m.active() {
			if j.record.Phase == wire.Starting && j.claim() == 0 {
				j.record.Phase, j.record.Executor, j.record.Why, j.layouts = wire.Queued, "", reason, nil
			}
		}
		plans, err = m.schedule(m.active())
	}
	held := fmt.Sprintf("jobs hold %s of %s", m.claims(), m.config.Budget)
	switch {
	case err != nil:
		m.noPlans = err.Error()
		m.log("%s, and cannot shrink that far; nothing else begins until some have ended: %v", held, err)
	case m.claims() > m.config.Budget:
		m.log("%s; they shrink", held)
	}
	if err == nil {
		m.adopt(plans, reason)
	}
}

// words is a budget in words.
func words(budget graph.Bytes) string {
	if budget == 0 {
		return "unlimited"
	}
	return budget.String()
}

// gain is what the jobs save over the next iterations by new plans, weighed by priority, and what changing takes.
func (m *Machine) gain(plans []planned) (gain, transition time.Duration) {
	for _, p := range plans {
		j := p.job
		if p.layout == nil {
			continue
		}
		out, in := p.out, p.in
		before := program.Time(j.newest().program, j.durations(j.newest(), out, in)).Iteration
		after := program.Time(p.layout.program, j.durations(p.layout, out, in)).Iteration
		left := min(m.config.Horizon, j.record.Spec.Iterations-j.record.Iteration)
		weight := time.Duration(j.priority())
		gain += weight * time.Duration(left) * (before - after)
		transition += weight * (copying(&j.newest().program.Epilogue, out, in) + copying(&p.layout.program.Prologue, out, in))
	}
	return gain, transition
}

// durations are those of a layout's steps by the job's newest latencies.
func (j *job) durations(l *layout, out, in cost.Link) program.Durations {
	d := program.Durations{Out: out, In: in}
	for _, s := range l.wire.Plan.Steps {
		d.Steps = append(d.Steps, j.latency[s.Op])
	}
	return d
}

// copying is how long the copies of a section take, lanes one after the other: an upper bound.
func copying(s *program.Section, out, in cost.Link) time.Duration {
	var sum time.Duration
	for _, c := range s.Commands {
		switch c.Kind {
		case program.Out:
			sum += out.Time(c.Bytes)
		case program.In:
			sum += in.Time(c.Bytes)
		}
	}
	return sum
}
