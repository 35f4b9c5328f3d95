package plans

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

// ExplainRequest is what tensile job explain asks of a job. It is answered by plans, as a [Request] is, but its answer
// changes nothing.
type ExplainRequest struct {
	// To is Input.From of whoever asks.
	To      int64        `json:"to"`
	Request wire.Request `json:"request"`
	// Job has the facts that need no work: times and plans are missing.
	Job *explain.Job `json:"job"`
	// At is the index of the job among the candidates of Plan. -1: it is not among them.
	At int `json:"at"`
	// Plan is the request for plans for the admitted jobs and those that wait, up to the job. nil: the job is not
	// planned for.
	Plan *Request `json:"plan,omitempty"`
	// Ranks are those of the candidates. Those that wait are in the order of these.
	Ranks []int64 `json:"ranks"`

	// Stands says whether Current is in force.
	Stands explain.Standing `json:"-"`
	Graph  *graph.Graph     `json:"-"`
	// Current is the plan in force, or else the newest. nil: the job has none.
	Current *ProvenLayout `json:"-"`
	// LastReport is the newest report of an iteration with Current. nil: none has come.
	LastReport *wire.Report `json:"-"`
	// Profile is nil if it was not made yet.
	Profile *planner.Profile `json:"-"`
	// Latency holds, per op, how long it takes alone. It is nil without a profile.
	Latency []time.Duration `json:"-"`
}

// Explain answers an explain request. The answer says which plans are missing because ctx was done before they were
// made.
func (p *Worker) Explain(ctx context.Context, q *ExplainRequest) wire.Answer {
	e := &explaining{planner: p, ctx: ctx, ExplainRequest: q}
	if q.Request.Storage != "" {
		life, err := e.explainStorage()
		if err != nil {
			return wire.Answer{Error: err.Error()}
		}
		return wire.Answer{Storage: life}
	}
	return wire.Answer{Explained: e.explainJob()}
}

// explaining is an explain request that is being answered.
type explaining struct {
	planner *Worker
	ctx     context.Context
	*ExplainRequest
}

// explainJob says where the time of the job goes, and what other settings would change.
func (e *explaining) explainJob() *explain.Job {
	j := *e.Job
	j.Has = e.currentPlan()
	if e.Current != nil && e.LastReport != nil && e.Profile != nil {
		e.addTimes(&j)
	}
	var base *Result
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

// budgets are those to compare the present budget with: a GiB more and less, or a quarter more and less if it is below
// 2 GiB. Where there is no limit, it is a GiB less than what is taken.
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

// currentPlan is the plan that the job has, as it was when it was made. nil: the job has none, or the plan does not say
// how it was made.
func (e *explaining) currentPlan() *explain.Plan {
	if e.Current == nil || e.Current.Wire.Reasons == nil {
		return nil
	}
	r := e.Current.Wire.Reasons
	return &explain.Plan{Epoch: e.Current.Epoch(), Stands: e.Stands,
		Outcome: outcomeOf(e.Job.Job, e.Current.program, r.Out, r.In, r.Unplanned, r.Speed)}
}

// addTimes says where the time of the newest iteration has gone.
func (e *explaining) addTimes(j *explain.Job) {
	t := explain.TimeOf(e.Current.Wire.Plan, explain.Measured{Number: e.LastReport.Iteration, Steps: e.LastReport.Steps,
		Stall: e.LastReport.Stall, Gate: e.LastReport.Gate, Wall: e.LastReport.Wall},
		func(op graph.OpID, variant string, first bool) time.Duration {
			if first {
				return e.Latency[op]
			}
			return e.Profile.Variant(op, variant).Takes(e.Latency[op])
		})
	j.Time = &t
	out, in := e.linkShare()
	stalls, _ := explain.Stalls(e.Current.program, program.Durations{Steps: e.LastReport.Steps, Out: out, In: in})
	for _, s := range stalls[min(len(stalls), explain.MaxStalls):] {
		j.StallsRest += s.Stall
	}
	j.Stalls = stalls[:min(len(stalls), explain.MaxStalls)]
}

// linkShare is the share of the link with which the job's plan was made. A plan that does not say counts with the whole
// link.
func (e *explaining) linkShare() (out, in cost.Link) {
	if r := e.Current.Wire.Reasons; r != nil {
		return r.Out, r.In
	}
	return e.planner.Device.Out, e.planner.Device.In
}

// alternative plans within a budget and, if priority is not 0, with another priority of the job. It also returns the
// result; nil if there is none.
func (e *explaining) alternative(budget graph.Bytes, priority int) (explain.Alternative, *Result) {
	own := &e.Plan.Jobs[e.At].Spec
	q := *e.Plan
	q.Budget, q.Jobs = budget, slices.Clone(e.Plan.Jobs)
	a := explain.Alternative{Budget: budget, Priority: max(1, own.Priority), Jobs: []explain.Outcome{}}
	if priority > 0 {
		a.Priority = priority
		ranks := slices.Clone(e.Ranks)
		ranks[e.At] += int64(priority - max(1, own.Priority))
		q.Jobs[e.At].Spec.Priority = priority
		q.Jobs = e.reordered(q.Jobs, ranks)
	}
	p := e.planner.Plan(e.ctx, &q)
	if len(p.Jobs) == 0 && q.Admitted > 0 && q.Admitted < len(q.Jobs) { // no queued job fits beside the admitted ones
		why, never := p.NoPlan, p.NeverFit
		alone := q
		alone.Jobs = q.Jobs[:q.Admitted]
		if p = e.planner.Plan(e.ctx, &alone); p.NoPlan == nil {
			p.NoPlan = why
		}
		p.NeverFit = never
	}
	if e.ctx.Err() != nil {
		a.Error = "the plan was not ready in time"
		return a, nil
	}
	for i, j := range p.Jobs {
		m := j.details
		a.Jobs = append(a.Jobs, outcomeOf(q.Jobs[i].Spec.Name, m.program, m.Out, m.In, m.Unplanned, j.Speed))
		a.Same = a.Same || q.Jobs[i].Spec.Name == own.Name && j.Layout == nil
	}
	for i, c := range q.Jobs[len(p.Jobs):] {
		a.Waiting = append(a.Waiting, c.Spec.Name)
		if c.Spec.Name == own.Name {
			a.Error = whyNoPlan(p, len(p.Jobs)+i, q.Jobs[len(p.Jobs)].Spec.Name, i)
		}
	}
	return a, p
}

// whyNoPlan says why a candidate has no plan. before is how many others without a plan come before it, and first is the
// name of the first of them.
func whyNoPlan(p *Result, candidate int, first string, before int) string {
	if never := p.NeverFit[candidate]; never != "" {
		return never
	}
	if p.NoPlan == nil {
		return ""
	}
	if before > 0 && len(p.Jobs) > 0 {
		return fmt.Sprintf("job %s is before it in the queue, and waits: %s", first, p.NoPlan.Why)
	}
	return p.NoPlan.Why
}

// reordered are the candidates with the queued ones in the order of other ranks.
func (e *explaining) reordered(jobs []Candidate, ranks []int64) []Candidate {
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

// outcomeOf is what a plan makes of a job, with its share of the link. Without a plan an iteration takes the time
// unplanned. Beside other jobs the job is expected to have the given speed, as a share of its speed alone; 0: nothing
// is expected.
func outcomeOf(job string, p *program.Program, out, in cost.Link, unplanned time.Duration,
	speed float64) explain.Outcome {
	t := program.Time(p, program.Durations{Steps: p.Plan.Made, Out: out, In: in})
	o := explain.Outcome{Job: job, Arena: p.Arena, Iteration: t.Iteration, Stall: t.Stall,
		Swapped: p.Plan.Swapped(p.Graph), Recomputes: len(p.Plan.Steps) - len(p.Graph.Ops), Speed: speed}
	if speed > 0 {
		o.Iteration = time.Duration(float64(unplanned) / speed)
	}
	return o
}

// explainStorage is the life of a storage under the plan that the job has or, where it has none, under the one that
// would be made now.
func (e *explaining) explainStorage() (*explain.Storage, error) {
	name := e.Request.Storage
	at := slices.IndexFunc(e.Graph.Storages, func(s graph.Storage) bool { return s.Name == name })
	if at < 0 {
		return nil, fmt.Errorf("job %s has no storage %s%s", e.Job.Job, name, similarNames(e.Graph, name))
	}
	var measured []time.Duration
	if e.LastReport != nil {
		measured = e.LastReport.Steps
	}
	if e.Current == nil {
		if err := e.planNow(); err != nil {
			return nil, err
		}
	}
	l, steps := e.Current.Wire, e.Current.Wire.Plan.Made
	if len(steps) == 0 { // the plan does not say
		steps = measured
	}
	if len(steps) == 0 {
		return nil, fmt.Errorf("nothing is known yet of the times of job %s: ask again when it has trained", e.Job.Job)
	}
	out, in := e.linkShare()
	id := graph.StorageID(at)
	life := explain.LifeOf(e.Current.program, program.Durations{Steps: steps, Out: out, In: in}, id, measured)
	life.Job, life.Stands = e.Job.Job, e.Stands
	if life.Unsaid = l.Reasons == nil || len(l.Reasons.Decisions) == 0; !life.Unsaid {
		for _, d := range l.Reasons.About(id) {
			life.Decisions = append(life.Decisions, explain.DecisionOf(e.Graph, l.Plan, d))
		}
	}
	return &life, nil
}

// planNow makes the plan that the job would get now.
func (e *explaining) planNow() error {
	if e.Plan != nil {
		_, base := e.alternative(e.Plan.Budget, 0)
		if base != nil && e.At < len(base.Jobs) && base.Jobs[e.At].Layout != nil {
			e.Current, e.Stands = base.Jobs[e.At].Layout, explain.Now
			return nil
		}
	}
	return fmt.Errorf("job %s has no plan now: %s", e.Job.Job, cmp.Or(e.Job.Reason, "it is "+e.Job.State))
}

// similarNames names storages whose names contain another name, for the line of an error.
func similarNames(g *graph.Graph, name string) string {
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
