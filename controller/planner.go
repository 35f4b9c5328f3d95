package controller

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"tensile/graph"
	"tensile/graph/cost"
	"tensile/plan/program"
	"tensile/predictor/correct"
	"tensile/scheduler"
	"tensile/scheduler/planner"
	"tensile/wire"
)

// Planner makes the plans that a [Machine] asks for. It is pure, and slow: whoever runs a machine has it work beside
// that.
type Planner struct {
	Config
	On planner.Device

	// Known returns what is planned already for a request, nil where nothing is; may be nil. Equal requests have equal
	// plans.
	Known func(scheduler.Request) *planner.Planned

	Plans *Plans // that were made; nil: all are made anew
}

// Plan does an errand. Once ctx is done it returns soon, and what it returns is worth nothing.
func (p *Planner) Plan(ctx context.Context, q *Plan) *Planned {
	w := work{Planner: p, ctx: ctx, plan: q, answer: &Planned{Ticket: q.Ticket},
		profiles: make(map[graph.Digest]*planner.Profile)}
	if w.profile(); len(w.answer.Never) > 0 {
		return w.answer
	}
	all := len(q.Jobs)
	jobs, err := w.schedule(all)
	if err != nil && q.Admitted < all {
		if w.possible(); len(w.answer.Never) > 0 {
			return w.answer
		}
		jobs, err = w.bisect(err)
	}
	w.answer.Jobs = jobs
	if len(jobs) < all {
		w.answer.Why = w.noPlan(err)
	}
	return w.answer
}

// work is one errand of a planner.
type work struct {
	*Planner
	On       planner.Device // as the jobs share it for which plans are being made: see sharing
	ctx      context.Context
	plan     *Plan
	answer   *Planned
	profiles map[graph.Digest]*planner.Profile // that were made
	jobs     []scheduler.Job                   // per candidate
	failed   int                               // for so many there was no plan, when there was none last
}

// sharing has plans made for candidates as they share memory together. A script cannot give a part of its arena back
// within an iteration, and a replica must not: it would wait for memory with others that have some and wait for it. So
// beside one of them each job has an arena for itself.
func (w *work) sharing(candidates []Candidate) {
	w.On = w.Planner.On
	alone := func(c Candidate) bool { return c.Spec.Script || c.Graph.Replicas() > 1 }
	if slices.ContainsFunc(candidates, alone) {
		w.On = w.On.Unshared()
	}
}

// profile gives candidates what they have not: profiles, and latencies by these and by what other jobs have taught.
// Copies share their profile.
func (w *work) profile() {
	for i, c := range w.plan.Jobs {
		if c.Profile == nil {
			p := w.profiles[c.Spec.Graph]
			if p == nil {
				made, err := w.Planner.On.Profile(c.Graph)
				if err != nil {
					w.never(i, fmt.Sprintf("job %s cannot run here: %v", c.Spec.Name, err))
					continue
				}
				p = &made
				w.profiles[c.Spec.Graph] = p
			}
			if w.answer.New == nil {
				w.answer.New = make(map[int]planner.Profile)
			}
			w.answer.New[i] = *p
			c.Profile = p
			c.Latency, c.Slack, c.Measured = expected(c.Graph, p, w.plan.Line, w.learnt)
			if c.Measured {
				c.Slack = nil
			}
		}
		j := c.Profile.Job(c.Spec.Name, c.Epoch, c.Graph)
		j.Latency, j.Slack, j.Measured, j.Weight, j.MaxSwapRate = c.Latency, c.Slack, c.Measured, c.Spec.Priority,
			c.Spec.SwapRate
		j.Last, j.OnHost = reported(&c), c.Beside
		j.Held, j.Least = c.Beyond, c.Spec.Least
		w.jobs = append(w.jobs, j)
	}
}

// reported is the last report of a candidate as policies take it; nil: there is none.
func reported(c *Candidate) *scheduler.Report {
	if c.Last == nil || c.Has == nil || c.Last.Epoch != c.Has.epoch() {
		return nil
	}
	r := &scheduler.Report{Plan: c.Has.Wire.Plan, Steps: c.Last.Steps}
	for _, m := range c.Last.Copies {
		r.Copies = append(r.Copies, scheduler.Copy(m))
	}
	return r
}

func (w *work) never(candidate int, why string) {
	if w.answer.Never == nil {
		w.answer.Never = make(map[int]string)
	}
	w.answer.Never[candidate] = why
}

// schedule plans for the first n candidates together and proves the plans.
func (w *work) schedule(n int) ([]PlannedJob, error) {
	if n == 0 {
		return nil, nil
	}
	host := w.plan.HostReserved
	for _, c := range w.plan.Jobs[n:] {
		host += c.Rests
	}
	w.sharing(w.plan.Jobs[:n])
	r := w.request(w.jobs[:n], w.plan.Reserved+w.contexts(n).Sum(), host)
	if n == len(w.plan.Jobs) {
		if jobs := w.near(r); jobs != nil {
			return jobs, nil
		}
	}
	jobs, err := w.together(r)
	if err != nil {
		w.failed = n
	}
	return jobs, err
}

// together makes the plans for a request for the first candidates, and proves them.
func (w *work) together(r scheduler.Request) ([]PlannedJob, error) {
	plans, err := w.plans(r)
	if err != nil {
		return nil, err
	}
	planned := plans.planned
	w.answer.Again = planned.Again
	jobs := make([]PlannedJob, len(r.Jobs))
	for i, s := range planned.Jobs {
		c := &w.plan.Jobs[i]
		speed := 0.0
		if planned.Expected != nil {
			speed = planned.Expected.Speed(s.Unplanned, i)
		}
		l := &ProvenLayout{Peak: s.Footprint.Peak, Host: s.Host - c.Beside, program: planned.Programs[i].Program(),
			Claim: plans.claims[i],
			Wire: &wire.Layout{Plan: s.Plan, Offsets: s.Layout.Offsets, Scratch: s.Layout.Scratch,
				Arena: s.Layout.Arena, Reasons: wire.ReasonsOf(&s, speed)}}
		jobs[i] = PlannedJob{Latencies: s.Latencies, Out: s.Out, In: s.In, Speed: speed,
			made: &made{s, planned.Programs[i].Program()}}
		if w.plan.Weigh {
			jobs[i].Alone = total(w.jobs[i].Latency)
			jobs[i].Slowdown = w.On.Slowdown(planned, i, jobs[i].Alone)
		}
		if c.Has == nil || !same(c.Has.Wire, l.Wire) {
			jobs[i].Layout = l
			jobs[i].Gain, jobs[i].Transition = gain(c, l, r.Jobs[i].Latency, s.Out, s.In)
		}
	}
	return jobs, nil
}

// claim is what a candidate counts with by a program; nil: its arena.
func (w *work) claim(candidate int, p *program.Program) *Claim {
	c := &w.plan.Jobs[candidate]
	if !c.Spec.Script || !w.shares() {
		return w.claimOf(p)
	}
	all := whole((&job{page: w.Page}).pages(p.Arena + c.Beyond))
	return &all
}

// made are plans for a request, which may be made already.
func (w *work) made(r scheduler.Request) (*planner.Planned, error) {
	if w.Known != nil {
		if p := w.Known(r); p != nil {
			return p, nil
		}
	}
	return w.On.Plan(w.ctx, r)
}

// contexts are those that there are with the first n candidates.
func (w *work) contexts(n int) wire.Contexts {
	c := w.plan.Contexts
	for i := range w.plan.Jobs[:n] {
		if w.plan.Jobs[i].Starts {
			c.Processes++
		}
	}
	return c
}

// request is for jobs in the budgets but for the bytes that are reserved.
func (w *work) request(jobs []scheduler.Job, reserved, host graph.Bytes) scheduler.Request {
	r := w.On.Request(jobs...)
	r.Policy, r.Options, r.Reports, r.Explain = w.Policy, w.Options, true, true
	if w.plan.Budget > 0 {
		r.Budget = max(1, w.plan.Budget-reserved)
		if w.shares() && r.Budget >= w.Page { // leases grant whole pages
			r.Budget = r.Budget / w.Page * w.Page
		}
	}
	if w.plan.HostMemory > 0 {
		r.HostBudget = max(1, w.plan.HostMemory-host)
	}
	return r
}

// possible finds the fresh candidates that do not even fit alone. Copies are tried once.
func (w *work) possible() {
	type kind struct {
		graph    graph.Digest
		swapRate float64
		beside   graph.Bytes
	}
	tried := make(map[kind]string)
	for i, c := range w.plan.Jobs[w.plan.Admitted:] {
		if !c.Fresh {
			continue
		}
		at, k := w.plan.Admitted+i, kind{c.Spec.Graph, c.Spec.SwapRate, c.Beside}
		why, known := tried[k]
		if !known {
			w.sharing(w.plan.Jobs[at : at+1])
			if _, err := planner.Schedule(w.ctx, w.request(w.jobs[at:at+1], w.apart().Sum(), 0)); err != nil {
				why = w.alone(at, err)
			}
			tried[k] = why
		}
		if why != "" {
			w.never(at, fmt.Sprintf("job %s cannot run here, even alone: %s", c.Spec.Name, why))
		}
	}
}

// apart are the contexts that there are beside a job that is alone: those of its executor, and of the controller where
// that has the device.
func (w *work) apart() wire.Contexts {
	c := wire.Contexts{Processes: 2, Each: w.plan.Contexts.Each}
	if w.plan.Device != nil {
		c.Processes = 1
	}
	return c
}

// alone says why a candidate can never run here.
func (w *work) alone(candidate int, err error) string {
	if over, ok := errors.AsType[*scheduler.OverHostError](err); ok {
		return fmt.Sprintf("it needs %s of host memory, of which there are %s: %s", over.Need, over.Budget, over.Reason)
	}
	over, ok := errors.AsType[*scheduler.OverBudgetError](err)
	if !ok {
		return err.Error()
	}
	at, why := "", "; "+over.Reason
	if s := scheduler.FirstWorkingSetOf(w.jobs[candidate], w.On.Align); s.Bytes == over.Need {
		at, why = " at "+w.plan.Jobs[candidate].Graph.Ops[s.Op].Name, ""
	}
	need, budget := over.Need, over.Budget
	if c := w.apart(); c.Sum() > 0 {
		need, budget, at = need+c.Sum(), w.plan.Budget, at+with(c)+","
	}
	return fmt.Sprintf("it needs %s%s and the budget is %s%s; %s", need, at, budget, why, Smaller)
}

// Smaller is what an answer advises that refuses a job for its size.
const Smaller = "try a smaller --batch or --image"

// bisect finds how many of the candidates fit, from the first on, given why all do not.
func (w *work) bisect(err error) ([]PlannedJob, error) {
	var plans []PlannedJob
	fits, fails := w.plan.Admitted, len(w.plan.Jobs)
	for fails-fits > 1 && w.ctx.Err() == nil {
		step := fits - w.plan.Admitted
		n := min(fits+step+1, (fits+fails)/2)
		if p, e := w.schedule(n); e == nil {
			fits, plans = n, p
		} else {
			fails, err = n, e
		}
	}
	return plans, err
}

func (w *work) noPlan(err error) *NoPlan {
	n := &NoPlan{Why: err.Error()}
	limit, limited := errors.AsType[*scheduler.WorkLimitError](err)
	if limited && limit.Last != nil {
		err = limit.Last // with what the best plans need it would fit
	}
	if over, ok := errors.AsType[*scheduler.OverBudgetError](err); ok {
		n.Need, n.Budget = over.Need, over.Budget
		if c := w.contexts(w.failed); c.Sum() > 0 {
			need := (&job{page: w.Page}).pages(over.Need) // the budget that it did not fit is in whole pages
			n.Contexts, n.Need, n.Budget = c, need+c.Sum(), max(0, w.plan.Budget-w.plan.Reserved)
			n.Why += fmt.Sprintf(" (the budget but for %s)", c)
		}
		if limited { // these may have been looked for within less than the budget
			n.Need = max(n.Need, n.Budget+max(1, w.Page))
		}
	}
	if over, ok := errors.AsType[*scheduler.OverHostError](err); ok {
		n.Need, n.Budget, n.OnHost = over.Need, over.Budget, true
	}
	return n
}

// same reports whether two layouts have a job do the same.
func same(a, b *wire.Layout) bool {
	p, q := *a.Plan, *b.Plan
	p.Epoch, p.Made, q.Epoch, q.Made = 0, nil, 0, nil
	return a.Arena == b.Arena && reflect.DeepEqual(a.Offsets, b.Offsets) && reflect.DeepEqual(a.Scratch, b.Scratch) &&
		reflect.DeepEqual(p, q)
}

// gain is what a job saves over its next iterations by a new layout, weighed by priority, and what changing to it
// takes; zero for its first, and against one of a graph that a script had when another controller led, which nobody has
// proven here.
func gain(c *Candidate, l *ProvenLayout, latency []time.Duration, out, in cost.Link) (gain, transition time.Duration) {
	if c.Has == nil || c.Has.program == nil {
		return 0, 0
	}
	weight := time.Duration(max(1, c.Spec.Priority))
	gain = weight * time.Duration(c.Left) * (iteration(c, c.Has, latency, out, in) - iteration(c, l, latency, out, in))
	return gain, weight * (copying(&c.Has.program.Epilogue, out, in) + copying(&l.program.Prologue, out, in))
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

// total is how long all ops of a graph take.
func total(latency []time.Duration) (sum time.Duration) {
	for _, took := range latency {
		sum += took
	}
	return sum
}

func (w *work) learnt(s graph.Signature) (latency time.Duration, ok bool) {
	latency, ok = w.plan.Learnt[s]
	return latency, ok
}

// expected are the latencies of a graph's ops as other jobs have taught them, or else by its profile and the line by
// which that is wrong, and by how much they may be off: nothing where it was learnt (nil if the profile does not say).
// measured says that all of them were learnt.
func expected(g *graph.Graph, p *planner.Profile, line correct.Line,
	learnt func(graph.Signature) (time.Duration, bool)) (latency, slack []time.Duration, measured bool) {
	latency = make([]time.Duration, len(p.Latency))
	if p.Slack != nil {
		slack = make([]time.Duration, len(latency))
	}
	measured = p.Signatures != nil
	for op, predicted := range p.Latency {
		if p.Signatures != nil {
			took, known := learnt(p.Signatures[op])
			if known {
				latency[op] = took
				continue
			}
			measured = false
		}
		kind := string(g.Ops[op].Kind)
		latency[op] = line.Apply(kind, predicted)
		if slack != nil {
			slack[op] = max(0, line.P95(kind, predicted, predicted+p.Slack[op])-latency[op])
		}
	}
	return latency, slack, measured
}
