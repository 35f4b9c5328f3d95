package plans

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"tensile/controller/memory"
	"tensile/graph"
	"tensile/graph/cost"
	"tensile/plan/compile"
	"tensile/plan/program"
	"tensile/predictor/correct"
	"tensile/scheduler"
	"tensile/scheduler/planner"
	"tensile/wire"
)

// Worker makes the plans that a [Machine] requests. It is pure, and slow: whoever runs a machine has it work on a
// goroutine of its own.
type Worker struct {
	Settings
	// Device describes the device that is planned for.
	Device planner.Device

	// Known returns the plans for a scheduler's request if they are made already, and nil otherwise. Equal requests
	// have equal plans. It may be nil.
	Known func(scheduler.Request) *planner.Planned

	// Cache keeps the plans that were made. nil: all are made anew.
	Cache *Cache
}

// Settings are the parts of a controller's configuration on which plans depend.
type Settings struct {
	// Policy names the policy that makes plans, and Options are its settings.
	Policy  string
	Options scheduler.Options
	// MemorySharing is how jobs share the budget. Zero: each has an arena for itself.
	MemorySharing wire.Sharing
	// Page is the unit in which the device backs memory, in bytes. 0: jobs share no memory.
	Page graph.Bytes
}

// sharesMemory reports whether jobs share memory.
func (s *Settings) sharesMemory() bool { return s.MemorySharing != wire.NoSharing }

// claimOf is what a job claims that trains with a proven program. It depends on the program alone. nil: the job claims
// its arena. A replica has its whole arena as base, in whole pages.
func (s *Settings) claimOf(p *program.Program) *memory.Claim {
	if !s.sharesMemory() {
		return nil
	}
	claim := &memory.Claim{Arena: memory.WholePages(p.Arena, s.Page)}
	switch {
	case p.Graph.Replicas() > 1:
		claim.Base = claim.Arena
	case s.MemorySharing.Gated():
		claim.Base = s.Page * graph.Bytes(compile.Divide(p, s.Page, max(p.Arena, s.Page)).Base.Count())
	}
	return claim
}

// NewLayout is the layout of a proven program, of which peak is the largest footprint of a slot, in bytes.
func (s *Settings) NewLayout(l *wire.Layout, p *program.Program, peak graph.Bytes) *ProvenLayout {
	return &ProvenLayout{Wire: l, Peak: peak, Host: p.Host, Claim: s.claimOf(p), program: p}
}

// Plan answers a plan request. Once ctx is done it returns soon, and what it returns is worth nothing.
func (p *Worker) Plan(ctx context.Context, q *Request) *Result {
	w := planJob{Worker: p, ctx: ctx, message: q, result: &Result{Ticket: q.Ticket},
		profiles: make(map[graph.Digest]*planner.Profile)}
	if w.profileCandidates(); len(w.result.NeverFit) > 0 {
		return w.result
	}
	all := len(q.Jobs)
	jobs, err := w.schedule(all)
	if err != nil && q.Admitted < all {
		if w.findImpossible(); len(w.result.NeverFit) > 0 {
			return w.result
		}
		jobs, err = w.bisect(err)
	}
	w.result.Jobs = jobs
	if len(jobs) < all {
		w.result.NoPlan = w.explainNoPlan(err)
	}
	return w.result
}

// planJob is one plan request that a worker is answering.
type planJob struct {
	*Worker
	// Device is the worker's, as the candidates that are planned for share its memory: see setSharing.
	Device planner.Device
	// ctx ends the work when nobody wants the plans any more.
	ctx     context.Context
	message *Request
	result  *Result
	// profiles are those that were made for the request.
	profiles map[graph.Digest]*planner.Profile
	// jobs are the candidates as the scheduler takes them.
	jobs []scheduler.Job
	// failedCount is for how many candidates there was no plan, the last time that there was none.
	failedCount int
}

// setSharing chooses how candidates that are planned for share memory together. A script cannot give a part of its
// arena back within an iteration. A replica must not: it would wait for memory with others that have some and wait for
// it. So beside one of them each job has an arena for itself.
func (w *planJob) setSharing(candidates []Candidate) {
	w.Device = w.Worker.Device
	alone := func(c Candidate) bool { return c.Spec.Script || c.Graph.Replicas() > 1 }
	if slices.ContainsFunc(candidates, alone) {
		w.Device = w.Device.Unshared()
	}
}

// profileCandidates gives candidates the profiles that they lack, and latencies by these and by what other jobs have
// taught. Equal graphs share their profile.
func (w *planJob) profileCandidates() {
	for i, c := range w.message.Jobs {
		if c.Profile == nil {
			p := w.profiles[c.Spec.Graph]
			if p == nil {
				made, err := w.Worker.Device.Profile(c.Graph)
				if err != nil {
					w.markNeverFits(i, fmt.Sprintf("job %s cannot run here: %v", c.Spec.Name, err))
					continue
				}
				p = &made
				w.profiles[c.Spec.Graph] = p
			}
			if w.result.NewProfiles == nil {
				w.result.NewProfiles = make(map[int]planner.Profile)
			}
			w.result.NewProfiles[i] = *p
			c.Profile = p
			c.Latency, c.Slack, c.Measured = ExpectedLatencies(c.Graph, p, w.message.Correction, w.learntLatency)
			if c.Measured {
				c.Slack = nil
			}
		}
		j := c.Profile.Job(c.Spec.Name, c.Epoch, c.Graph)
		j.Latency, j.Slack, j.Measured, j.Weight, j.MaxSwapRate = c.Latency, c.Slack, c.Measured, c.Spec.Priority,
			c.Spec.SwapRate
		j.Last, j.OnHost = reportOf(&c), c.HostExtra
		j.Held, j.Least = c.DeviceExtra, c.Spec.Least
		w.jobs = append(w.jobs, j)
	}
}

// reportOf is the last report of a candidate as policies take it. nil: there is none.
func reportOf(c *Candidate) *scheduler.Report {
	if c.LastReport == nil || c.Current == nil || c.LastReport.Epoch != c.Current.Epoch() {
		return nil
	}
	r := &scheduler.Report{Plan: c.Current.Wire.Plan, Steps: c.LastReport.Steps}
	for _, m := range c.LastReport.Copies {
		r.Copies = append(r.Copies, scheduler.Copy(m))
	}
	return r
}

// markNeverFits records why a candidate can never run here.
func (w *planJob) markNeverFits(candidate int, why string) {
	if w.result.NeverFit == nil {
		w.result.NeverFit = make(map[int]string)
	}
	w.result.NeverFit[candidate] = why
}

// schedule plans for the first n candidates together and proves the plans.
func (w *planJob) schedule(n int) ([]PlannedJob, error) {
	if n == 0 {
		return nil, nil
	}
	host := w.message.HostReserved
	for _, c := range w.message.Jobs[n:] {
		host += c.HostParked
	}
	w.setSharing(w.message.Jobs[:n])
	r := w.request(w.jobs[:n], w.message.Reserved+w.contexts(n).Sum(), host)
	if n == len(w.message.Jobs) {
		if jobs := w.replanIncrementally(r); jobs != nil {
			return jobs, nil
		}
	}
	jobs, err := w.planTogether(r)
	if err != nil {
		w.failedCount = n
	}
	return jobs, err
}

// planTogether makes the plans for a scheduler's request for the first candidates, and proves them.
func (w *planJob) planTogether(r scheduler.Request) ([]PlannedJob, error) {
	plans, err := w.findOrMake(r)
	if err != nil {
		return nil, err
	}
	planned := plans.planned
	w.result.WantsReports = planned.Again
	jobs := make([]PlannedJob, len(r.Jobs))
	for i, s := range planned.Jobs {
		c := &w.message.Jobs[i]
		speed := 0.0
		if planned.Expected != nil {
			speed = planned.Expected.Speed(s.Unplanned, i)
		}
		l := &ProvenLayout{Peak: s.Footprint.Peak, Host: s.Host - c.HostExtra, program: planned.Programs[i].Program(),
			Claim: plans.claims[i],
			Wire: &wire.Layout{Plan: s.Plan, Offsets: s.Layout.Offsets, Scratch: s.Layout.Scratch,
				Arena: s.Layout.Arena, Reasons: wire.ReasonsOf(&s, speed)}}
		jobs[i] = PlannedJob{Latencies: s.Latencies, Out: s.Out, In: s.In, Speed: speed,
			details: &planDetails{s, planned.Programs[i].Program()}}
		if w.message.WantSlowdowns {
			jobs[i].Alone = TotalTime(w.jobs[i].Latency)
			jobs[i].Slowdown = w.Device.Slowdown(planned, i, jobs[i].Alone)
		}
		if c.Current == nil || !sameLayout(c.Current.Wire, l.Wire) {
			jobs[i].Layout = l
			jobs[i].Gain, jobs[i].Transition = gainOf(c, l, r.Jobs[i].Latency, s.Out, s.In)
		}
	}
	return jobs, nil
}

// claimOfCandidate is what a candidate claims by a program. nil: it claims its arena.
func (w *planJob) claimOfCandidate(candidate int, p *program.Program) *memory.Claim {
	c := &w.message.Jobs[candidate]
	if !c.Spec.Script || !w.sharesMemory() {
		return w.claimOf(p)
	}
	all := memory.Exclusive(memory.WholePages(p.Arena+c.DeviceExtra, w.Page))
	return &all
}

// findKnownOrPlan returns the plans for a scheduler's request that Known has, or makes them.
func (w *planJob) findKnownOrPlan(r scheduler.Request) (*planner.Planned, error) {
	if w.Known != nil {
		if p := w.Known(r); p != nil {
			return p, nil
		}
	}
	return w.Device.Plan(w.ctx, r)
}

// contexts are those that there are with the first n candidates.
func (w *planJob) contexts(n int) wire.Contexts {
	c := w.message.Contexts
	for i := range w.message.Jobs[:n] {
		if w.message.Jobs[i].StartsProcess {
			c.Processes++
		}
	}
	return c
}

// request is the scheduler's request for jobs, within the budgets less the bytes that are reserved of the device and of
// the host.
func (w *planJob) request(jobs []scheduler.Job, reserved, host graph.Bytes) scheduler.Request {
	r := w.Device.Request(jobs...)
	r.Policy, r.Options, r.Reports, r.Explain = w.Policy, w.Options, true, true
	if w.message.Budget > 0 {
		r.Budget = max(1, w.message.Budget-reserved)
		if w.sharesMemory() && r.Budget >= w.Page { // leases grant whole pages
			r.Budget = r.Budget / w.Page * w.Page
		}
	}
	if w.message.HostMemory > 0 {
		r.HostBudget = max(1, w.message.HostMemory-host)
	}
	return r
}

// findImpossible finds the unchecked candidates that do not fit even when they are alone. Equal ones are tried once.
func (w *planJob) findImpossible() {
	type kind struct {
		graph    graph.Digest
		swapRate float64
		beside   graph.Bytes
	}
	tried := make(map[kind]string)
	for i, c := range w.message.Jobs[w.message.Admitted:] {
		if !c.Unchecked {
			continue
		}
		at, k := w.message.Admitted+i, kind{c.Spec.Graph, c.Spec.SwapRate, c.HostExtra}
		why, known := tried[k]
		if !known {
			w.setSharing(w.message.Jobs[at : at+1])
			if _, err := planner.Schedule(w.ctx, w.request(w.jobs[at:at+1], w.contextsAlone().Sum(), 0)); err != nil {
				why = w.whyNeverFits(at, err)
			}
			tried[k] = why
		}
		if why != "" {
			w.markNeverFits(at, fmt.Sprintf("job %s cannot run here, even alone: %s", c.Spec.Name, why))
		}
	}
}

// contextsAlone are the contexts that there are beside a job that is alone: that of its executor, and that of the
// controller where it has the device.
func (w *planJob) contextsAlone() wire.Contexts {
	c := wire.Contexts{Processes: 2, Each: w.message.Contexts.Each}
	if w.message.Device != nil {
		c.Processes = 1
	}
	return c
}

// whyNeverFits says why a candidate can never run here, given the error of a plan for it alone.
func (w *planJob) whyNeverFits(candidate int, err error) string {
	if over, ok := errors.AsType[*scheduler.OverHostError](err); ok {
		return fmt.Sprintf("it needs %s of host memory, of which there are %s: %s", over.Need, over.Budget, over.Reason)
	}
	over, ok := errors.AsType[*scheduler.OverBudgetError](err)
	if !ok {
		return err.Error()
	}
	at, why := "", "; "+over.Reason
	if s := scheduler.FirstWorkingSetOf(w.jobs[candidate], w.Device.Align); s.Bytes == over.Need {
		at, why = " at "+w.message.Jobs[candidate].Graph.Ops[s.Op].Name, ""
	}
	need, budget := over.Need, over.Budget
	if c := w.contextsAlone(); c.Sum() > 0 {
		need, budget, at = need+c.Sum(), w.message.Budget, at+c.Suffix()+","
	}
	hint := SmallerHint
	if w.message.Jobs[candidate].Spec.Script {
		at, hint = "", "give a smaller --memory"
	}
	return fmt.Sprintf("it needs %s%s and the budget is %s%s; %s", need, at, budget, why, hint)
}

// SmallerHint is what the refusal of a job for its size advises.
const SmallerHint = "try a smaller --batch or --image"

// bisect finds how many of the candidates fit, from the first on, and their plans. err is why not all fit.
func (w *planJob) bisect(err error) ([]PlannedJob, error) {
	var plans []PlannedJob
	fits, fails := w.message.Admitted, len(w.message.Jobs)
	for fails-fits > 1 && w.ctx.Err() == nil {
		step := fits - w.message.Admitted
		n := min(fits+step+1, (fits+fails)/2)
		if p, e := w.schedule(n); e == nil {
			fits, plans = n, p
		} else {
			fails, err = n, e
		}
	}
	return plans, err
}

// explainNoPlan is why there are no plans for more candidates, given the error of the last attempt.
func (w *planJob) explainNoPlan(err error) *NoPlan {
	n := &NoPlan{Why: err.Error()}
	limit, limited := errors.AsType[*scheduler.WorkLimitError](err)
	if limited && limit.Last != nil {
		err = limit.Last // it would fit with what the best plans need
	}
	if over, ok := errors.AsType[*scheduler.OverBudgetError](err); ok {
		n.Need, n.Budget = over.Need, over.Budget
		if c := w.contexts(w.failedCount); c.Sum() > 0 {
			need := memory.WholePages(over.Need, w.Page) // the budget is in whole pages
			n.Contexts, n.Need, n.Budget = c, need+c.Sum(), max(0, w.message.Budget-w.message.Reserved)
			n.Why += fmt.Sprintf(" (the budget but for %s)", c)
		}
		if limited { // the search may have used less than the budget
			n.Need = max(n.Need, n.Budget+max(1, w.Page))
		}
	}
	if over, ok := errors.AsType[*scheduler.OverHostError](err); ok {
		n.Need, n.Budget, n.OnHost = over.Need, over.Budget, true
	}
	return n
}

// sameLayout reports whether two layouts have a job do the same.
func sameLayout(a, b *wire.Layout) bool {
	p, q := *a.Plan, *b.Plan
	p.Epoch, p.Made, q.Epoch, q.Made = 0, nil, 0, nil
	return a.Arena == b.Arena && reflect.DeepEqual(a.Offsets, b.Offsets) && reflect.DeepEqual(a.Scratch, b.Scratch) &&
		reflect.DeepEqual(p, q)
}

// gainOf is what a job saves over its next iterations by a new layout, and what the change to it takes, both weighted
// by priority. Both are zero for the first layout of a job, and where the present one is of a graph that a script had
// when another controller led, which was not proven here.
func gainOf(c *Candidate, l *ProvenLayout, latency []time.Duration, out, in cost.Link) (gain,
	transition time.Duration) {
	if c.Current == nil || c.Current.program == nil {
		return 0, 0
	}
	weight := time.Duration(max(1, c.Spec.Priority))
	gain = weight * time.Duration(c.Remaining) * (iterationTime(c, c.Current, latency, out, in) - iterationTime(c, l,
		latency, out, in))
	return gain, weight * (c.Current.LeaveTime(out, in) + l.EnterTime(out, in))
}

// EnterTime is how long the copies take with which a job leaves Home for the layout, and LeaveTime how long those take
// with which it comes back.
func (l *ProvenLayout) EnterTime(out, in cost.Link) time.Duration {
	return copyTime(&l.program.Prologue, out, in)
}
func (l *ProvenLayout) LeaveTime(out, in cost.Link) time.Duration {
	return copyTime(&l.program.Epilogue, out, in)
}

// copyTime is how long the copies of a section take, one lane after the other: an upper bound.
func copyTime(s *program.Section, out, in cost.Link) time.Duration {
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

// TotalTime is how long all ops of a graph take.
func TotalTime(latency []time.Duration) (sum time.Duration) {
	for _, took := range latency {
		sum += took
	}
	return sum
}

// learntLatency is the latency of a signature, if the request has it.
func (w *planJob) learntLatency(s graph.Signature) (latency time.Duration, ok bool) {
	latency, ok = w.message.Learnt[s]
	return latency, ok
}

// ExpectedLatencies are the latencies of a graph's ops. An op has what other jobs have taught, or else its profile,
// corrected by the line. slack is by how much each may be off: 0 where it was learnt; nil if the profile does not say.
// measured says that all of them were learnt.
func ExpectedLatencies(g *graph.Graph, p *planner.Profile, line correct.Line,
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
