package controller

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"tensile/controller/plans"
	"tensile/scheduler/explain"
	"tensile/wire"
)

// explain has a question about a job answered outside the machine.
func (m *Machine) explain(from int64, j *job, q *wire.Request) {
	if j.record.State.Over() {
		m.explainOver(from, j, q)
		return
	}
	if j.damage != "" {
		m.reply(from, fmt.Errorf("job %s %s", q.Job, j.damage))
		return
	}
	if j.domain == nil {
		m.reply(from, fmt.Errorf("job %s %s: plans explain it once it has a device", q.Job, j.record.Reason))
		return
	}
	o := &plans.ExplainRequest{To: from, Request: *q, Job: m.explainFacts(j), At: -1, Graph: j.graph,
		Profile: j.profile, Latency: slices.Clone(j.latency)}
	if l := j.newestLayout(); l != nil && !j.isStale(l) {
		o.Current, o.Stands = &l.ProvenLayout, explain.ToCome
	}
	for _, l := range j.deliveredLayouts() {
		if l.Epoch() == j.record.Applied {
			o.Current, o.Stands = &l.ProvenLayout, explain.InForce
		}
	}
	if o.Current != nil && !o.Current.IsProven() { // it is a script's, of its former graph
		o.Current = nil
	}
	if o.Current != nil && j.lastReport != nil && j.lastReport.Epoch == o.Current.Epoch() {
		o.LastReport = j.lastReport
	}
	d := j.domain
	jobs := d.reachableJobs()
	admitted := len(jobs)
	if j.record.State == wire.JobQueued {
		waiting := d.waitingJobs()
		if at := slices.Index(waiting, j); at >= 0 {
			waiting = waiting[:at]
		}
		jobs = append(append(jobs, waiting...), j)
	}
	if o.At = slices.Index(jobs, j); o.At >= 0 {
		o.Plan = d.planRequestFor(jobs, admitted)
		for i, other := range jobs {
			o.Ranks = append(o.Ranks, m.line().Rank(other.queued()))
			o.Plan.Jobs[i].Unchecked = other == j && j.unchecked // whether others can ever run does not matter here
		}
	}
	m.emit(Output{PlanOutput: PlanOutput{Explain: o}})
}

// explainOver says how a job went that is over.
func (m *Machine) explainOver(from int64, j *job, q *wire.Request) {
	r := &j.record
	if q.Storage != "" || q.Priority > 0 {
		m.reply(from, fmt.Errorf("job %s is %s, and has no plans any more: tensile job explain %[1]s says how it went",
			q.Job, r.State))
		return
	}
	m.emit(Output{Answer: &Answer{from, wire.Answer{Explained: &explain.Job{Job: r.Spec.Name, Model: r.Spec.Model,
		Device: r.Device, State: string(r.State), Over: true, Reason: r.Reason, Iteration: r.Iteration,
		Of: r.Spec.Iterations, Past: m.pastOf(j), Holders: []explain.Holder{}, Plans: []explain.Alternative{}}}}})
}

// pastOf is how a job has gone until now.
func (m *Machine) pastOf(j *job) *explain.Past {
	c := m.soFar(j)
	p := &explain.Past{Waited: c.Waited, Iterations: c.Iterations, Alone: c.Served, Took: j.iterationTime,
		Stall: c.Stall, Gate: c.Gate, Out: c.Out, In: c.In, Restarts: j.record.Restarts, Arena: j.record.Arena,
		Touched: j.progress.touched}
	for cause, n := range c.Plans {
		if p.Plans == nil {
			p.Plans = make(map[string]int64)
		}
		p.Plans[string(cause)] = n
	}
	if r := j.record.Result; r != nil {
		p.Arena, p.Touched = max(p.Arena, r.Arena), r.Touched
	}
	return p
}

// explainFacts are the parts of an explanation that need no work.
func (m *Machine) explainFacts(j *job) *explain.Job {
	r, d := &j.record, j.domain
	e := &explain.Job{Job: r.Spec.Name, Model: r.Spec.Model, Device: d.config.Device, State: string(r.State),
		Reason: r.Reason, Remedy: r.Wait.Remedy(), Past: m.pastOf(j), Iteration: r.Iteration, Of: r.Spec.Iterations,
		Budget: d.config.Budget, Taken: d.takenBytes(),
		Shared: d.config.sharesMemory(), Holders: []explain.Holder{}, Plans: []explain.Alternative{}}
	for _, other := range m.jobs {
		if c := other.claim(); other.domain == d && !c.IsZero() {
			h := explain.Holder{Job: other.record.Spec.Name, State: string(other.record.State),
				Priority: other.priority(), Bytes: c.Arena}
			if e.Shared {
				h.Base = c.Base
			}
			e.Holders = append(e.Holders, h)
		}
		if held, _ := d.reservationsOf(other); held > 0 {
			e.Holders = append(e.Holders, explain.Holder{Job: other.record.Spec.Name, Bytes: held, Away: true})
		}
	}
	slices.SortStableFunc(e.Holders, func(a, b explain.Holder) int { return cmp.Compare(b.Bytes, a.Bytes) })
	if c := d.contexts(); c.Sum() > 0 {
		e.Holders = append(e.Holders, explain.Holder{Bytes: c.Sum()})
	}
	return e
}

// maxExplanations may be asked for at the same time. One at a time is worked out.
const maxExplanations = 16

// explainTime is how long the plans of one explanation may take: less than a command line waits.
const explainTime = 45 * time.Second

// explain answers an explain request on a goroutine of its own.
func (r *runner) explain(q *plans.ExplainRequest) {
	answer := r.answers[q.To]
	delete(r.answers, q.To)
	if answer == nil {
		return // nobody waits for the answer, as in a replay
	}
	select {
	case r.explanations <- struct{}{}:
	default:
		answer <- wire.Answer{Error: fmt.Sprintf("%d explanations are worked out already: try again in a few seconds",
			maxExplanations)}
		return
	}
	r.background.Go(func() {
		defer func() { <-r.explanations }()
		select {
		case r.explaining <- struct{}{}:
		case <-r.ctx.Done():
			return // those who wait are told that the controller ends
		}
		ctx, cancel := context.WithTimeout(r.ctx, explainTime)
		defer cancel()
		answer <- r.workerFor(q.Plan).Explain(ctx, q)
		<-r.explaining
	})
}
