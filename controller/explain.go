package controller

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"tensile/graph"
	"tensile/graph/cost"
	"tensile/plan/program"
	"tensile/scheduler/explain"
	"tensile/scheduler/planner"
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

	Stands  explain.Standing `json:"-"` // of the plan that it has
	Graph   *graph.Graph     `json:"-"`
	Has     *ProvenLayout    `json:"-"` // in force, or else the newest; nil: it has none
	Told    *wire.Report     `json:"-"` // the newest with that; nil: none has come
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
	if j.hurt != "" {
		m.reply(from, fmt.Errorf("job %s %s", q.Job, j.hurt))
		return
	}
	if j.domain == nil {
		m.reply(from, fmt.Errorf("job %s %s: plans explain it once it has a device", q.Job, j.record.Reason))
		return
	}
	o := &Question{To: from, Request: *q, Job: m.facts(j), At: -1, Graph: j.graph, Profile: j.profile}
	o.Latency = slices.Clone(j.latency)
	if l := j.newest(); l != nil && !j.stale(l) {
		o.Has, o.Stands = &l.ProvenLayout, explain.ToCome
	}
	for _, l := range j.given() {
		if l.epoch() == j.record.Applied {
			o.Has, o.Stands = &l.ProvenLayout, explain.InForce
		}
	}
	if o.Has != nil && o.Has.program == nil { // a script's, of a graph that is over
		o.Has = nil
	}
	if o.Has != nil && j.told != nil && j.told.Epoch == o.Has.epoch() {
		o.Told = j.told
	}
	d := j.domain
	jobs := d.reachable()
	admitted := len(jobs)
	if j.record.State == wire.JobQueued {
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
		Reason: r.Reason, Iteration: r.Iteration, Of: r.Spec.Iterations, Budget: d.config.Budget, Taken: d.taken(),
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
	j.Has = e.has()
	if e.Has != nil && e.Told != nil && e.Profile != nil {
		e.times(&j)
	}
	var base *Planned
	if e.Plan != nil {
		var first explain.Alternative
		first, base = e.alternative(e.Plan.Budget, 0)
		j.Plans = append([]explain.Alternative{}, first)
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

// has is the plan that the job has, as it was when it was made; nil: it has none, or one that does not say how it was
// made.
func (e *explaining) has() *explain.Plan {
	if e.Has == nil || e.Has.Wire.Reasons == nil {
		return nil
	}
	r := e.Has.Wire.Reasons
	return &explain.Plan{Epoch: e.Has.epoch(), Stands: e.Stands,
		Outcome: outcome(e.Job.Job, e.Has.program, r.Out, r.In, r.Unplanned, r.Speed)}
}

// times says where the time of the newest iteration has gone.
func (e *explaining) times(j *explain.Job) {
	t := explain.TimeOf(e.Has.Wire.Plan, explain.Measured{Number: e.Told.Iteration, Steps: e.Told.Steps,
		Stall: e.Told.Stall, Gate: e.Told.Gate, Wall: e.Told.Wall},
		func(op graph.OpID, variant string, first bool) time.Duration {
			if first {
				return e.Latency[op]
			}
			return e.Profile.Variant(op, variant).Takes(e.Latency[op])
		})
	j.Time = &t
	out, in := e.link()
	stalls, _ := explain.Stalls(e.Has.program, program.Durations{Steps: e.Told.Steps, Out: out, In: in})
	for _, s := range stalls[min(len(stalls), explain.MaxStalls):] {
		j.StallsRest += s.Stall
	}
	j.Stalls = stalls[:min(len(stalls), explain.MaxStalls)]
}

// link is the share of the link with which the plan was made that the job has; the whole link, of a plan that does not
// say.
func (e *explaining) link() (out, in cost.Link) {
	if r := e.Has.Wire.Reasons; r != nil {
		return r.Out, r.In
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
		m := j.made
		a.Jobs = append(a.Jobs, outcome(q.Jobs[i].Spec.Name, m.program, m.Out, m.In, m.Unplanned, j.Speed))
		a.Same = a.Same || q.Jobs[i].Spec.Name == own.Name && j.Layout == nil
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

// outcome is what a plan makes of a job, with its share of the link. Without a plan an iteration takes unplanned, and
// beside others speed is expected of it.
func outcome(job string, p *program.Program, out, in cost.Link, unplanned time.Duration,
	speed float64) explain.Outcome {
	t := program.Time(p, program.Durations{Steps: p.Plan.Made, Out: out, In: in})
	o := explain.Outcome{Job: job, Arena: p.Arena, Iteration: t.Iteration, Stall: t.Stall,
		Swapped: p.Plan.Swapped(p.Graph), Recomputes: len(p.Plan.Steps) - len(p.Graph.Ops), Speed: speed}
	if speed > 0 {
		o.Iteration = time.Duration(float64(unplanned) / speed)
	}
	return o
}

// storage is the life of a storage under the plan that the job has, or, where it has none, under the one that would be
// made now.
func (e *explaining) storage() (*explain.Storage, error) {
	name := e.Request.Storage
	at := slices.IndexFunc(e.Graph.Storages, func(s graph.Storage) bool { return s.Name == name })
	if at < 0 {
		return nil, fmt.Errorf("job %s has no storage %s%s", e.Job.Job, name, alike(e.Graph, name))
	}
	var measured []time.Duration
	if e.Told != nil {
		measured = e.Told.Steps
	}
	if e.Has == nil {
		if err := e.planNow(); err != nil {
			return nil, err
		}
	}
	l, steps := e.Has.Wire, e.Has.Wire.Plan.Made
	if len(steps) == 0 { // of a plan that does not say
		steps = measured
	}
	if len(steps) == 0 {
		return nil, fmt.Errorf("nothing is known yet of the times of job %s: ask again when it has trained", e.Job.Job)
	}
	out, in := e.link()
	id := graph.StorageID(at)
	life := explain.LifeOf(e.Has.program, program.Durations{Steps: steps, Out: out, In: in}, id, measured)
	life.Job, life.Stands = e.Job.Job, e.Stands
	if life.Unsaid = l.Reasons == nil || len(l.Reasons.Decisions) == 0; !life.Unsaid {
		for _, d := range l.Reasons.About(id) {
			life.Decisions = append(life.Decisions, explain.DecisionOf(e.Graph, l.Plan, d))
		}
	}
	return &life, nil
}

// planNow has the plan made that the job would have.
func (e *explaining) planNow() error {
	if e.Plan != nil {
		_, base := e.alternative(e.Plan.Budget, 0)
		if base != nil && e.At < len(base.Jobs) && base.Jobs[e.At].Layout != nil {
			e.Has, e.Stands = base.Jobs[e.At].Layout, explain.Now
			return nil
		}
	}
	return fmt.Errorf("job %s has no plan now: %s", e.Job.Job, cmp.Or(e.Job.Reason, "it is "+e.Job.State))
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
