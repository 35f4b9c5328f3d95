package controller

import (
	"fmt"
	"reflect"
	"time"

	"tensile/cost"
	"tensile/graph"
	"tensile/internal/text"
	"tensile/plan"
	"tensile/program"
	"tensile/scheduler"
	"tensile/wire"
)

// planned is what a job would change to.
type planned struct {
	job    *job
	layout *layout // nil: what it has is the same
	peak   graph.Bytes
	phase  string
	out    cost.Link // the job's share of the link
	in     cost.Link
}

// schedule plans for jobs together and proves the plans.
func (m *Machine) schedule(jobs []*job) ([]planned, error) {
	r := scheduler.Request{Policy: m.config.Policy, Budget: m.config.Budget, Out: m.config.Out, In: m.config.In,
		Align: m.config.Align, Options: m.config.Options}
	for _, j := range jobs {
		r.Jobs = append(r.Jobs, scheduler.Job{Name: j.record.Spec.Name, Epoch: j.record.Epoch + 1, Graph: j.graph,
			Latency: j.latency, Slack: j.slack(), Scratch: j.profile.Scratch, Variant: j.profile.Variant,
			Measured: j.learnt, Weight: j.record.Spec.Priority, MaxSwapRate: j.record.Spec.SwapRate})
	}
	result, err := scheduler.Schedule(r)
	if err != nil {
		return nil, err
	}
	plans := make([]planned, len(jobs))
	for i, s := range result.Jobs {
		plans[i].job = jobs[i]
		l, err := prove(jobs[i].graph, &wire.Layout{Plan: s.Plan, Offsets: s.Layout.Offsets, Scratch: s.Layout.Scratch, Arena: s.Layout.Arena})
		if err != nil {
			return nil, fmt.Errorf("the plan of job %s is wrong, please report this: %w", jobs[i].record.Spec.Name, err)
		}
		if last := jobs[i].newest(); last == nil || !same(last.wire, l.wire) {
			plans[i].layout = l
		}
		plans[i].peak, plans[i].phase, plans[i].out, plans[i].in = s.Footprint.Peak, s.Phase, s.Out, s.In
	}
	return plans, nil
}

// prove returns a layout whose program was checked.
func prove(g *graph.Graph, w *wire.Layout) (*layout, error) {
	if err := plan.Validate(g, w.Plan); err != nil {
		return nil, err // of an invalid plan there are no stays
	}
	placed := &program.Layout{Stays: plan.StaysOf(g, w.Plan), Offsets: w.Offsets, Scratch: w.Scratch, Arena: w.Arena}
	compiled, err := program.Prove(g, w.Plan, placed, program.Options{})
	if err != nil {
		return nil, err
	}
	return &layout{wire: w, program: compiled}, nil
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
		p.job.assumed, p.job.reports, p.job.record.SlotPeak = p.job.latencySum(), 0, p.peak
		if m.config.Limited {
			p.job.record.Link = wire.Rates{Out: p.out.Rate, In: p.in.Rate}
		}
		if p.layout != nil {
			p.job.record.Latencies = p.phase
			p.job.plan(p.layout, reason)
		}
	}
}

// improve plans again for all jobs, and adopts the plans if that is worth the time of the transitions.
func (m *Machine) improve(reason string) {
	jobs := m.active()
	if len(jobs) == 0 || !m.complete() {
		return
	}
	plans, err := m.schedule(jobs)
	if err != nil {
		m.log("no new plans after %s: %v", reason, err)
		return
	}
	gain, transition := m.gain(plans)
	if transition == 0 || gain <= transition {
		for _, j := range jobs {
			j.assumed, j.reports = j.latencySum(), 0
		}
		return
	}
	m.log("new plans: %s; they gain %v over the next iterations, the transition takes %v", reason, text.Duration(gain), text.Duration(transition))
	m.adopt(plans, reason)
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
