package controller

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"tensile/cost"
	"tensile/explain"
	"tensile/graph"
	"tensile/planner"
	"tensile/program"
	"tensile/wire"
)

// Question is what tensile explain asks of a job: an errand as a Plan is, whose answer changes nothing.
type Question struct {
	To      int64        `json:"to"` // Input.From
	Request wire.Request `json:"request"`
	Job     *explain.Job `json:"job"`            // without times and plans
	At      int          `json:"at"`             // of the job among the candidates
	Plan    *Plan        `json:"plan,omitempty"` // what is planned for, up to the job; nil: that is not planned for
	Ranks   []int64      `json:"ranks"`          // of the candidates, by which those that wait are in order

	Graph   *graph.Graph     `json:"-"`
	InForce *ProvenLayout    `json:"-"` // nil: none is
	Told    *wire.Report     `json:"-"` // the newest of that; nil: none has come
	Profile *planner.Profile `json:"-"` // nil: it was not made yet
	Latency []time.Duration  `json:"-"` // per op, as if it ran alone; nil without a profile
}

// explain has a question about a job answered beside the machine.
func (m *Machine) explain(from int64, j *job, q *wire.Request) {
	if j.record.State.Over() {
		m.reply(from, fmt.Errorf("job %s is %s: there is nothing to explain any more; tensile jobs has its times",
			q.Job, j.record.State))
		return
	}
	if j.domain == nil {
		m.reply(from, fmt.Errorf("job %s %s: plans explain it once it has a device", q.Job, j.record.Why))
		return
	}
	o := &Question{To: from, Request: *q, Job: m.facts(j), At: -1, Graph: j.graph, Profile: j.profile}
	o.Latency = slices.Clone(j.latency)
	for _, l := range j.given() {
		if l.epoch() == j.record.Applied {
			o.InForce = &l.ProvenLayout
		}
	}
	if o.InForce != nil && j.told != nil && j.told.Epoch == o.InForce.epoch() {
		o.Told = j.told
	}
	d := j.domain
	jobs := d.reachable()
	admitted := len(jobs)
	if j.record.State == wire.Queued {
		waiting := d.waiting()
		if at := slices.Index(waiting, j); at >= 0 {
			waiting = waiting[:at]
		}
		jobs = append(append(jobs, waiting...), j)
	}
	if o.At = slices.Index(jobs, j); o.At >= 0 {
		o.Plan = d.planFor(jobs, admitted)
		for i, other := range jobs {
			o.Ranks = append(o.Ranks, m.rank(other))
			o.Plan.Jobs[i].Fresh = other == j && j.fresh // another that can never run does not matter here
		}
	}
	m.say(Output{Ask: o})
}

// facts are what a job's answer says that needs no work.
func (m *Machine) facts(j *job) *explain.Job {
	r, d := &j.record, j.domain
	e := &explain.Job{Job: r.Spec.Name, Model: r.Spec.Model, Device: d.config.Device, State: string(r.State),
		Why: r.Why, Iteration: r.Iteration, Of: r.Spec.Iterations, Budget: d.config.Budget, Taken: d.taken(),
		Shared: d.config.shares(), Holders: []explain.Holder{}, Plans: []explain.Alternative{}}
	for _, other := range m.jobs {
		if c := other.claim(); other.domain == d && !c.none() {
			h := explain.Holder{Job: other.record.Spec.Name, State: string(other.record.State),
				Priority: other.priority(), Bytes: c.Arena}
			if e.Shared {
				h.Base = c.Base
			}
			e.Holders = append(e.Holders, h)
		}
		if held, _ := d.heldBy(other); held > 0 {
			e.Holders = append(e.Holders, explain.Holder{Job: other.record.Spec.Name, Bytes: held, Away: true})
		}
	}
	slices.SortStableFunc(e.Holders, func(a, b explain.Holder) int { return cmp.Compare(b.Bytes, a.Bytes) })
	if c := d.contexts(); c.Sum() > 0 {
		e.Holders = append(e.Holders, explain.Holder{Bytes: c.Sum()})
	}
	return e
}

// maxAsked is how many explanations may be asked for at the same time. One is worked out at a time.
const maxAsked = 16

// explainTime is how long the plans of one explanation may take: less than a command line waits.
const explainTime = 45 * time.Second

// explain answers a question beside all else.
func (r *runner) explain(q *Question) {
	answer := r.waiting[q.To]
	delete(r.waiting, q.To)
	if answer == nil {
		return // nobody waits, as in a replay
	}
	select {
	case r.asked <- struct{}{}:
	default:
		answer <- wire.Answer{Error: fmt.Sprintf("%d explanations are worked out already: try again in a few seconds",
			maxAsked)}
		return
	}
	r.errands.Go(func() {
		defer func() { <-r.asked }()
		select {
		case r.planning <- struct{}{}:
		case <-r.ctx.Done():
			return // whoever waits hears that the controller ends
		}
		ctx, cancel := context.WithTimeout(r.ctx, explainTime)
		defer cancel()
		answer <- r.planner(q.Plan).Explain(ctx, q)
		<-r.planning
	})
}

// Explain answers a question. Plans that are not made when ctx is done are said to be missing.
func (p *Planner) Explain(ctx context.Context, q *Question) wire.Answer {
	e := &explaining{planner: p, ctx: ctx, Question: q}
	if q.Request.Storage != "" {
		life, err := e.storage()
		if err != nil {
			return wire.Answer{Error: err.Error()}
		}
		return wire.Answer{Storage: life}
	}
	return wire.Answer{Explained: e.job()}
}

// explaining is a question that is being answered.
type explaining struct {
	planner *Planner
	ctx     context.Context
	*Question
}

// job says where the time of the job goes, and what other settings would change.
func (e *explaining) job() *explain.Job {
	j := *e.Job
	var base *Planned
	if e.Plan != nil {
		var first explain.Alternative
		first, base = e.alternative(e.Plan.Budget, 0)
		j.Plans = append([]explain.Alternative{}, first)
	}
	if e.InForce != nil && e.InForce.program != nil && e.Told != nil && e.Profile != nil {
		out, in := e.link(base)
		e.times(&j, out, in)
	}
	if base == nil {
		return &j
	}
	for _, budget := range e.budgets() {
		a, _ := e.alternative(budget, 0)
		j.Plans = append(j.Plans, a)
	}
	if e.Request.Priority > 0 {
		a, _ := e.alternative(e.Plan.Budget, e.Request.Priority)
		j.Plans = append(j.Plans, a)
	}
	return &j
}

// budgets are those to compare the present one with: a GiB more and less, or a quarter of one below 2 GiB. Where there
// is none, a GiB less than what is taken.
func (e *explaining) budgets() []graph.Bytes {
	budget, taken := e.Plan.Budget, e.Job.Taken
	switch {
	case budget == 0 && taken > graph.GiB:
		return []graph.Bytes{taken - graph.GiB}
	case budget == 0:
		return nil
	case budget < 2*graph.GiB:
		return []graph.Bytes{budget + budget/4, budget - budget/4}
	}
	return []graph.Bytes{budget + graph.GiB, budget - graph.GiB}
}

// times says where the time of the newest iteration has gone.
func (e *explaining) times(j *explain.Job, out, in cost.Link) {
	t := explain.TimeOf(e.InForce.Wire.Plan, explain.Measured{Number: e.Told.Iteration, Steps: e.Told.Steps,
		Stall: e.Told.Stall, Gate: e.Told.Gate, Wall: e.Told.Wall},
		func(op graph.OpID, variant string, first bool) time.Duration {
			if first {
				return e.Latency[op]
			}
			return e.Profile.Variant(op, variant).Takes(e.Latency[op])
		})
	j.Time = &t
	stalls, _ := explain.Stalls(e.InForce.program, program.Durations{Steps: e.Told.Steps, Out: out, In: in})
	for _, s := range stalls[min(len(stalls), explain.MaxStalls):] {
		j.StallsRest += s.Stall
	}
	j.Stalls = stalls[:min(len(stalls), explain.MaxStalls)]
}

// link is the job's share of the link: the one with which it was planned for just now, or else the whole.
func (e *explaining) link(p *Planned) (out, in cost.Link) {
	if p != nil && e.At < len(p.Jobs) {
		return p.Jobs[e.At].Out, p.Jobs[e.At].In
	}
	return e.planner.Out, e.planner.In
}

// alternative plans within a budget and, if that is not 0, with another priority of the job. It returns the plans, too;
// nil if there are none.
func (e *explaining) alternative(budget graph.Bytes, priority int) (explain.Alternative, *Planned) {
	own := &e.Plan.Jobs[e.At].Spec
	q := *e.Plan
	q.Budget, q.Jobs = budget, slices.Clone(e.Plan.Jobs)
	a := explain.Alternative{Budget: budget, Priority: max(1, own.Priority), Jobs: []explain.Outcome{}}
	if priority > 0 {
		a.Priority = priority
		ranks := slices.Clone(e.Ranks)
		ranks[e.At] += int64(priority - max(1, own.Priority))
		q.Jobs[e.At].Spec.Priority = priority
		q.Jobs = e.ordered(q.Jobs, ranks)
	}
	p := e.planner.Plan(e.ctx, &q)
	if len(p.Jobs) == 0 && q.Admitted > 0 && q.Admitted < len(q.Jobs) { // nobody who waits fits beside those
		why, never := p.Why, p.Never
		alone := q
		alone.Jobs = q.Jobs[:q.Admitted]
		if p = e.planner.Plan(e.ctx, &alone); p.Why == nil {
			p.Why = why
		}
		p.Never = never
	}
	if e.ctx.Err() != nil {
		a.Error = "the plan was not ready in time"
		return a, nil
	}
	for i, j := range p.Jobs {
		a.Jobs = append(a.Jobs, outcome(&q.Jobs[i], &j))
	}
	for i, c := range q.Jobs[len(p.Jobs):] {
		a.Waiting = append(a.Waiting, c.Spec.Name)
		if c.Spec.Name == own.Name {
			a.Error = missing(p, len(p.Jobs)+i, q.Jobs[len(p.Jobs)].Spec.Name, i)
		}
	}
	return a, p
}

// missing says why a candidate has no plan, that so many others without one are before, the first of them called so.
func missing(p *Planned, candidate int, first string, before int) string {
	if never := p.Never[candidate]; never != "" {
		return never
	}
	if p.Why == nil {
		return ""
	}
	if before > 0 && len(p.Jobs) > 0 {
		return fmt.Sprintf("job %s is before it in the queue, and waits: %s", first, p.Why.Why)
	}
	return p.Why.Why
}

// ordered are candidates with those that wait in the order of other ranks.
func (e *explaining) ordered(jobs []Candidate, ranks []int64) []Candidate {
	order := make([]int, len(jobs))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order[e.Plan.Admitted:], func(a, b int) int { return cmp.Compare(ranks[b], ranks[a]) })
	all := make([]Candidate, len(jobs))
	for i, at := range order {
		all[i] = jobs[at]
	}
	return all
}

// outcome is what a plan makes of a job.
func outcome(c *Candidate, j *PlannedJob) explain.Outcome {
	m := j.made
	t := program.Time(m.program, program.Durations{Steps: m.Plan.Made, Out: m.Out, In: m.In})
	o := explain.Outcome{Job: c.Spec.Name, Arena: m.Layout.Arena, Iteration: t.Iteration, Stall: t.Stall,
		Swapped: m.Plan.Swapped(c.Graph), Recomputes: len(m.Plan.Steps) - len(c.Graph.Ops), Speed: j.Speed}
	if j.Speed > 0 {
		o.Iteration = time.Duration(float64(m.Unplanned) / j.Speed)
	}
	return o
}

// storage is the life of a storage under the plan in force, or, where none is, under the one that would be made now.
func (e *explaining) storage() (*explain.Storage, error) {
	name := e.Request.Storage
	at := slices.IndexFunc(e.Graph.Storages, func(s graph.Storage) bool { return s.Name == name })
	if at < 0 {
		return nil, fmt.Errorf("job %s has no storage %s%s", e.Job.Job, name, alike(e.Graph, name))
	}
	id := graph.StorageID(at)
	var now *made
	var base *Planned
	if e.Plan != nil {
		q := *e.Plan
		q.reasons = true
		e.Plan = &q
		if _, base = e.alternative(q.Budget, 0); base != nil && e.At < len(base.Jobs) {
			now = base.Jobs[e.At].made
		}
	}
	out, in := e.link(base)
	var life explain.Storage
	same := true
	switch {
	case e.InForce != nil && e.InForce.program != nil:
		var measured []time.Duration
		if e.Told != nil {
			measured = e.Told.Steps
		}
		steps := e.InForce.Wire.Plan.Made
		if len(steps) == 0 { // of a plan that does not say
			steps = measured
		}
		if len(steps) == 0 {
			return nil, fmt.Errorf("nothing is known yet of the times of job %s: ask again when it has trained",
				e.Job.Job)
		}
		life = explain.LifeOf(e.InForce.program, program.Durations{Steps: steps, Out: out, In: in}, id, measured)
		same = now != nil && equal(now, e.InForce)
	case now != nil:
		life = explain.LifeOf(now.program, program.Durations{Steps: now.Plan.Made, Out: out, In: in}, id, nil)
	default:
		return nil, fmt.Errorf("job %s has no plan now: %s", e.Job.Job, cmp.Or(e.Job.Why, "it is "+e.Job.State))
	}
	life.Job = e.Job.Job
	if now != nil {
		life.Now = !same
		for _, d := range now.Decisions {
			if d.Storage == id {
				life.Decisions = append(life.Decisions, explain.DecisionOf(e.Graph, &now.Scheduled, d))
			}
		}
	}
	return &life, nil
}

// equal reports whether a plan has a job do what a layout has it do.
func equal(m *made, l *ProvenLayout) bool {
	return same(l.Wire, &wire.Layout{Plan: m.Plan, Offsets: m.Layout.Offsets, Scratch: m.Layout.Scratch,
		Arena: m.Layout.Arena})
}

// alike names storages whose names hold another name, for an error's line.
func alike(g *graph.Graph, name string) string {
	const shown = 5
	var names []string
	for _, s := range g.Storages {
		if strings.Contains(s.Name, name) {
			names = append(names, s.Name)
		}
	}
	switch n := len(names); {
	case n == 0:
		return fmt.Sprintf(": the first of %d is %s; tensile plan --job JOB --steps lists them", len(g.Storages),
			g.Storages[0].Name)
	case n > shown:
		return fmt.Sprintf(": %s and %d more have that in their names", strings.Join(names[:shown], ", "), n-shown)
	}
	return fmt.Sprintf(": is %s meant?", strings.Join(names, ", or "))
}
