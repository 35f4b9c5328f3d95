package controller

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"tensile/graph"
	"tensile/wire"
)

// wants are the plans that are to be made, when nothing else is being planned.
type wants struct {
	admission bool   // jobs that wait may fit now
	must      bool   // the plans for these are to be adopted, whatever they gain
	better    reason // why the admitted jobs are to be planned for again; none: they are not
}

// errand is a Plan that is being made.
type errand struct {
	ticket   int64
	jobs     []*job // in the order of the Plan
	admitted int
	plan     *Plan
	must     bool   // the plans are to be adopted whatever they gain
	near     bool   // jobs have come or gone since there were plans, and most may keep theirs
	reason   reason // why those that are admitted are planned for again, if nothing else is
	asked    time.Duration
	budget   graph.Bytes // of then
}

// restFactor is how many times as long as plans were made no drift of latencies has plans made again, so that planning
// for noise takes at most a tenth of a core.
const restFactor = 9

// unchanged reports whether there is as much memory as when plans were asked for.
func (d *domain) unchanged(e *errand) bool {
	return e.budget == d.config.Budget && e.plan.Reserved == d.reserved() && e.plan.Contexts == d.staying()
}

// improves reports whether the errand is for better plans alone.
func (e *errand) improves() bool { return e.admitted == len(e.jobs) }

// ask has plans made, unless some are being made already. Those that memory waits for come first, then the jobs that
// wait, then what may be better.
func (d *domain) ask() {
	if d.errand == nil && !d.want.admission && d.want.better.none() {
		return
	}
	active, waiting := d.reachable(), slices.DeleteFunc(d.waiting(), d.m.roams)
	d.want.admission = d.want.admission && len(waiting) > 0
	if len(active) == 0 {
		d.want.better = reason{}
	}
	d.cancel()
	admit := d.want.admission && (d.want.better.none() || !d.overfull())
	if d.errand != nil || !admit && d.want.better.none() || d.sought && !d.overfull() && !d.bare() {
		return
	}
	if !admit {
		waiting = nil
	}
	d.send(waiting)
}

// send has plans made for the jobs that are admitted, and those that wait.
func (d *domain) send(waiting []*job) *errand {
	active := d.reachable()
	e := &errand{jobs: active, admitted: len(active), reason: d.want.better, must: d.want.must}
	e.near = !e.must && (e.reason.none() || e.reason.cause == Departure) && !d.m.tenanted()
	if len(waiting) > 0 {
		e.jobs = append(e.jobs, waiting...)
		d.want.admission = false
	}
	d.want.better, d.want.must = reason{}, false // an admission plans for all
	d.post(e)
	for _, j := range e.jobs {
		if j.reports = 0; j.domain == d {
			j.assumed = d.steady(j)
		}
	}
	return e
}

// post sends an errand out.
func (d *domain) post(e *errand) {
	d.m.ticket++
	e.ticket, e.asked, e.budget, e.plan = d.m.ticket, d.m.now, d.config.Budget, d.planFor(e.jobs, e.admitted)
	e.plan.Ticket, e.plan.Near = e.ticket, e.near
	d.errand = e
	d.m.say(Output{Plan: e.plan})
}

// planFor is what planners need to know to plan for jobs, of which so many are admitted.
func (d *domain) planFor(jobs []*job, admitted int) *Plan {
	p := &Plan{Device: d.brought, Weigh: len(d.m.domains) > 1, Admitted: admitted,
		Budget: d.config.Budget, Reserved: d.reserved(), Line: d.corrects(),
		HostMemory: d.config.HostMemory, HostReserved: d.hostReserved(jobs), Contexts: d.staying()}
	starts := d.starts(jobs)
	var weights map[*job]int
	if d.m.tenanted() {
		weights = d.m.weights(jobs)
	}
	for i, j := range jobs {
		p.Jobs = append(p.Jobs, d.candidate(j))
		if p.Jobs[i].Starts = starts[i]; p.Jobs[i].Profile == nil && p.Learnt == nil {
			p.Learnt = d.learnt.latencies()
		}
		if w := weights[j]; w > 0 {
			p.Jobs[i].Spec.Priority = w
		}
	}
	return p
}

// candidate is a job as planners take it.
func (d *domain) candidate(j *job) Candidate {
	c := Candidate{Spec: j.record.Spec, Epoch: j.record.Epoch + 1, Graph: j.graph, Last: j.last, Fresh: j.fresh,
		Left: d.config.Horizon, Beyond: j.beyond()}
	if e, known := d.expectation(j); known {
		c.Profile, c.Latency, c.Slack, c.Measured = e.profile, e.latency, e.slack, e.measured
	}
	if !j.record.Spec.Script {
		c.Left = min(c.Left, j.record.Spec.Iterations-j.record.Iteration)
	}
	if c.Beside = j.beside; !j.active() {
		c.Rests = j.hostClaim()
	}
	if last := j.newest(); last != nil && !j.stale(last) && j.domain == d {
		c.Has = &last.ProvenLayout
	}
	return c
}

// cancel gives an errand up that has become pointless: all its jobs are over, or it only looks for better plans while
// jobs wait that are to be planned for together with all others.
func (d *domain) cancel() {
	e := d.errand
	if e == nil || d.tries() {
		return
	}
	if d.m.moves.plans(e) {
		if d.pressed() {
			d.m.dropTransfer()
			d.m.stir()
		}
		return
	}
	over := !slices.ContainsFunc(e.jobs, func(j *job) bool { return !j.record.State.Over() })
	if !over && !(e.improves() && (d.want.admission || d.sought) && !d.overfull() && !d.bare()) {
		return
	}
	d.m.say(Output{Cancel: e.ticket})
	d.errand = nil
	if !over && d.want.better.none() {
		d.want.better = e.reason
	}
}

// planned takes what an errand has brought. An answer to another errand than the newest of a device is dropped.
func (m *Machine) planned(p *Planned) {
	for _, d := range m.domains {
		if d.errand != nil && d.errand.ticket == p.Ticket {
			for i, profile := range p.New {
				if j := d.errand.jobs[i]; !j.record.State.Over() {
					d.know(j, profile)
				}
			}
			switch {
			case d.tries():
				m.tried(d, p)
			case m.moves.plans(d.errand):
				m.moves.answer(d, p)
			default:
				d.planned(p)
			}
			return
		}
	}
}

// tries reports whether the errand is part of a trial.
func (d *domain) tries() bool {
	t := d.m.trial
	return t != nil && slices.ContainsFunc(t.list, func(a *attempt) bool { return a.errand == d.errand })
}

// planned takes the plans that the domain's errand has brought. What has changed since it was sent out counts: plans of
// jobs that are over are dropped.
func (d *domain) planned(p *Planned) {
	e := d.errand
	d.errand, d.m.changed = nil, true
	d.rest = d.m.now + restFactor*(d.m.now-e.asked)
	for _, j := range e.jobs {
		j.follow, j.last = p.Again, nil
	}
	for i, j := range e.jobs {
		if j.profile != nil || j.record.State.Over() {
			continue
		}
		if e, known := d.expectation(j); known {
			j.profile, j.spare, j.learnt, j.assumed = e.profile, e.slack, e.measured, e.latency
			j.latency = slices.Clone(e.latency)
		} else if profile, made := p.New[i]; made {
			j.profile = &profile
			d.expect(j)
			j.assumed = slices.Clone(j.latency)
		}
	}
	switch {
	case len(p.Never) > 0:
		d.never(e, p.Never)
	case e.improves() && p.Why != nil:
		d.noneBetter(e, p.Why)
	case e.improves():
		d.improve(e, p.Jobs)
	default:
		d.enter(e, p)
	}
}

// never refuses jobs that can not even run alone, or has them fail if they were taken already. The others of the errand
// are tried again.
func (d *domain) never(e *errand, why map[int]string) {
	if e.budget != d.config.Budget {
		why = nil // within another budget they may
	}
	for i, j := range e.jobs[e.admitted:] {
		text, never := why[e.admitted+i]
		never = never && !d.m.denser(j)
		switch {
		case !never:
			d.want.admission = true
		case j.batch != nil && d.m.find(j.record.Spec.Name) == j && d.m.largerAway(j, d) == nil: // not refused yet
			d.m.refuse(j.batch, text+d.m.elsewhereFits(d))
		case j.record.State != wire.JobQueued:
		case j.chosen && j.fitted: // other devices may take it
			j.chosen, d.m.look = false, true
		case j.batch == nil || d.m.find(j.record.Spec.Name) == j:
			j.stuck = d.m.unfit(j, d, text)
		}
	}
	if d.want.better.none() {
		d.want.better = e.reason
	}
}

// enter admits jobs that waited, with plans for them and those that ran already. The others go on waiting, each for
// what is in its way: none overtakes another that waits for bytes.
func (d *domain) enter(e *errand, p *Planned) {
	if j, why := d.neverFit(e, p); why != "" {
		only := d.reserved() == 0 && (len(d.m.domains) == 1 || j.record.Spec.Device != "") // it will fit nowhere
		if j.batch != nil && only {
			d.m.refuse(j.batch, why)
			return
		}
		if j.batch != nil {
			d.m.take(j.batch)
		}
		d.stick(j, why)
		return
	}
	fits := max(len(p.Jobs), e.admitted)
	for _, j := range e.jobs {
		if j.fresh, j.fitted = false, true; j.batch != nil {
			d.m.take(j.batch)
		}
	}
	begun, cut := d.whole(slices.DeleteFunc(waits(e.jobs[e.admitted:fits]), d.m.away))
	for _, j := range begun {
		j.record.State, j.record.Reason, j.record.Need, j.record.Preempted = wire.JobStarting, "", 0, false
		j.chosen, j.full = false, false
		for _, o := range d.m.siblings(j) { // which are to follow
			if d.m.look = true; o.record.State == wire.JobQueued && o.domain != nil {
				o.domain.want.admission = true
			}
		}
	}
	why := p.Why
	for _, j := range cut {
		d.wait(j, cmp.Or(why, &NoPlan{Why: "waits for the other replicas"}))
	}
	for i, j := range waits(e.jobs[fits:]) {
		if d.m.denser(j) {
			continue
		}
		switch d.wait(j, why); {
		case i > 0 || fits > 0 || why.Need == 0 || d.reserved() == 0:
		case !d.unchanged(e):
			d.m.admit(d) // it may fit by now
		default:
			j.record.Reason += ", but for what executors may have that cannot be reached"
			j.stuck, d.want.admission = true, true // it holds nobody up
		}
		why = &NoPlan{Why: fmt.Sprintf("job %s is before it in the queue", e.jobs[fits].record.Spec.Name)}
	}
	if len(begun) == 0 { // none fits, or all were stopped meanwhile, for which others would shrink in vain
		if d.want.better.none() {
			d.want.better = e.reason
		}
		return
	}
	cause := e.reason
	switch {
	case len(begun) == 1:
		cause = because(Arrival, "job %s has come", begun[0].record.Spec.Name)
	case len(begun) > 1:
		cause = because(Arrival, "%d jobs have come", len(begun))
	}
	d.adopt(d.standing(e, p.Jobs), cause.event())
	d.sayShared()
	if e.budget != d.config.Budget && d.want.better.none() { // since they were asked for
		d.want.better = because(Memory, "the budget is %s", words(d.config.Budget))
	}
}

// waits are those of some jobs that are queued still.
func waits(jobs []*job) []*job {
	return slices.DeleteFunc(slices.Clone(jobs), func(j *job) bool { return j.record.State != wire.JobQueued })
}

// wait says why a job waits.
func (d *domain) wait(j *job, why *NoPlan) {
	before, need := j.record.Reason, "it and the running jobs need"
	if slices.ContainsFunc(d.m.siblings(j), func(o *job) bool { return o != j && o.domain == d }) {
		need = "it, its other replicas and the running jobs need" // where nothing runs, too
	}
	d.m.look = d.m.look || j.chosen // on other devices it may fit
	j.chosen = false
	j.record.Need, j.wants, j.record.Reason = 0, 0, why.Why
	switch {
	case why.OnHost:
		j.wants = why.Need - why.Budget
		j.record.Reason = fmt.Sprintf("waits for %s of host memory: %s %s of %s", j.wants, need, why.Need,
			why.Budget)
	case why.Need > 0:
		j.record.Need = why.Need - why.Budget
		j.record.Reason = fmt.Sprintf("waits for %s: %s %s of %s%s", j.record.Need, need, why.Need, why.Budget,
			with(why.Contexts))
	}
	if len(d.m.domains) > 1 && why.Need > 0 {
		j.record.Reason += " of device " + d.config.Name
	}
	if j.record.Reason == before {
		return
	}
	d.m.event(Event{Kind: Queued, Job: j.record.Spec.Name, Bytes: j.record.Need, Reason: j.record.Reason})
}

// adoption is a plan that a job may change to.
type adoption struct {
	job *job
	PlannedJob
}

// standing are the plans of an errand whose jobs are admitted. A job that was told to stop or to park keeps the plan
// that it has, and changes to its new share of the link only.
func (d *domain) standing(e *errand, plans []PlannedJob) []adoption {
	var list []adoption
	for i, p := range plans {
		j := e.jobs[i]
		late := p.Layout != nil && j.stale(&layout{ProvenLayout: *p.Layout}) // it has recorded something else meanwhile
		if !j.goesOn() || late {
			p.Layout, p.Gain, p.Transition = nil, 0, 0
		}
		if j.active() {
			list = append(list, adoption{j, p})
		}
	}
	return list
}

// improve adopts plans for the jobs that are admitted if they are worth the time of the transitions, or if jobs have
// none or have to shrink.
func (d *domain) improve(e *errand, jobs []PlannedJob) {
	d.noPlan = ""
	plans := d.standing(e, jobs)
	if d.overfull() {
		if held := d.taken(); d.config.Budget > 0 && held > d.config.Budget {
			d.m.event(Event{Kind: Shrinking, Bytes: held, Budget: d.config.Budget, Contexts: d.contexts()})
		}
		d.adopt(plans, e.reason.event())
		return
	}
	var gain, transition time.Duration
	for _, p := range plans {
		gain, transition = gain+p.Gain, transition+p.Transition
	}
	if d.bare() || e.must {
		d.adopt(plans, e.reason.event())
	} else if transition > 0 && gain > transition {
		adopted := e.reason.event()
		adopted.Gain, adopted.Transition = gain, transition
		d.adopt(plans, adopted)
	} else {
		d.m.stir()
		for _, p := range plans { // they keep plans that are about as good
			p.job.record.Speed, p.job.record.Slowdown = p.Speed, p.Slowdown
		}
	}
}

// noneBetter goes on without new plans. Where jobs have to shrink, or have no plan, those that have nothing yet wait
// again.
func (d *domain) noneBetter(e *errand, why *NoPlan) {
	if (d.overfull() || d.bare()) && d.requeue(e.reason.text) {
		d.want.better, d.want.admission = e.reason, true
		return
	}
	told := e.reason.event()
	told.Kind, told.Why = Unplanned, why.Why
	if d.overfull() {
		told = Event{Kind: Stuck, Bytes: d.taken(), Budget: d.config.Budget, Contexts: d.contexts(), Why: why.Why}
	}
	for _, j := range e.jobs {
		d.m.unplanned(j, why)
	}
	said := fmt.Sprint(told.Kind, told.Bytes, told.Budget, told.Contexts, told.Why)
	if d.noPlan != said { // jobs that cannot shrink would say so with every drift
		d.noPlan = said
		d.m.event(told)
	}
}

// requeue has the admitted jobs wait again that have no memory yet, and reports whether there are any. They may never
// fit the budget that there is now.
func (d *domain) requeue(reason string) (any bool) {
	for _, j := range d.active() {
		if j.record.State == wire.JobStarting && j.claim().none() {
			d.back(j)
			j.record.Reason, any = reason, true
		}
	}
	return any
}

// back has a job wait again that was admitted and has no memory yet.
func (d *domain) back(j *job) {
	d.m.discard(j, j.given(), j.record.Park == "" && !j.record.Spec.Script)
	j.record.State, j.layouts, j.fresh = wire.JobQueued, nil, true
	if j.record.Park == "" && !j.record.Spec.Script {
		j.record.Executor = ""
	}
}

// adopt makes plans the newest of their jobs.
func (d *domain) adopt(plans []adoption, e Event) {
	for _, p := range plans {
		j := p.job
		j.record.Speed, j.record.Slowdown = p.Speed, p.Slowdown
		j.reports = 0
		j.record.Device = d.config.Device
		if d.config.Limited {
			j.record.Link = wire.Rates{Out: p.Out.Rate, In: p.In.Rate}
		}
		if p.Layout != nil && p.Layout.epoch() > j.record.Epoch {
			j.record.Latencies = p.Latencies
			j.plan(p.Layout, e.Reason)
			d.m.count(j, func(t *Tally) { t.plan(e.Cause) })
			e.Plans++
		}
	}
	if e.Plans > 0 {
		e.Kind = Adopted
		d.m.event(e)
	}
	d.m.stir()
}

// overfull reports whether the newest plans of all jobs do not fit the budget together, which was larger before.
func (d *domain) overfull() bool {
	var sum Together
	for _, j := range d.reachable() {
		if l := j.newest(); l != nil {
			sum = sum.With(j.with(l))
		}
	}
	taken := sum.Bytes() + d.reserved() + d.staying().Sum() + d.toStart().Sum()
	return d.config.Budget > 0 && taken > d.config.Budget || d.hostFull()
}

// bare reports whether an admitted job has no plan for what it does, as one that was planned for just before a
// controller died.
func (d *domain) bare() bool {
	for j := range d.jobs() {
		if j.goesOn() && (j.newest() == nil || j.stale(j.newest())) {
			return true
		}
	}
	return false
}
