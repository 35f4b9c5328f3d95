package controller

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"tensile/controller/memory"
	"tensile/controller/plans"
	"tensile/graph"
	"tensile/wire"
)

// pendingPlans is what plans are to be requested for as soon as no request of the device is open.
type pendingPlans struct {
	// admission says that queued jobs may fit now.
	admission bool
	// mandatory says that the plans for replan are to be adopted whatever they gain.
	mandatory bool
	// replan is why the admitted jobs are to be planned for again. Zero: they are not.
	replan reason
}

// openRequest is a plan request that was sent and is not answered yet.
type openRequest struct {
	// ticket is the request's number. Answers to others are ignored.
	ticket int64
	// jobs are the candidates, in the order of the message; the first ones, as many as admitted says, have begun or are
	// about to, and the others are queued.
	jobs     []*job
	admitted int
	// message is the request as it was sent.
	message *plans.Request
	// mandatory says that the plans are to be adopted whatever they gain.
	mandatory bool
	// incremental says that jobs have come or gone since the present plans were made, and most may keep theirs.
	incremental bool
	// reason is why the admitted jobs are planned for again. Zero: only for those that wait.
	reason reason
	// sentAt is when the request was sent, since the Unix epoch.
	sentAt time.Duration
	// budget is the budget of the device when the request was sent, in bytes. 0: there was no limit.
	budget graph.Bytes
}

// coolDownFactor is how many times as long as plans were made no drift has plans made again. So planning for noise
// takes at most a tenth of a core.
const coolDownFactor = 9

// memoryUnchanged reports whether there is as much memory as when plans were requested.
func (d *domain) memoryUnchanged(e *openRequest) bool {
	return e.budget == d.config.Budget && e.message.Reserved == d.reservedBytes() &&
		e.message.Contexts == d.stayingContexts()
}

// onlyImproves reports whether the request is for better plans alone: no queued job is among its candidates.
func (e *openRequest) onlyImproves() bool { return e.admitted == len(e.jobs) }

// requestDuePlans requests plans that are due, unless a request is open. Plans for which memory waits come first, then
// those for queued jobs, then better ones.
func (d *domain) requestDuePlans() {
	if d.request == nil && !d.pending.admission && d.pending.replan.isZero() {
		return
	}
	active, waiting := d.reachableJobs(), slices.DeleteFunc(d.waitingJobs(), d.m.needsSearch)
	d.pending.admission = d.pending.admission && len(waiting) > 0
	if len(active) == 0 {
		d.pending.replan = reason{}
	}
	d.cancelRequest()
	admit := d.pending.admission && (d.pending.replan.isZero() || !d.isOverfull())
	if d.request != nil || !admit && d.pending.replan.isZero() || d.inSearch && !d.isOverfull() &&
		!d.hasUnplannedJob() {
		return
	}
	if !admit {
		waiting = nil
	}
	d.requestPlans(waiting)
}

// requestPlans requests plans for the admitted jobs and some that wait.
func (d *domain) requestPlans(waiting []*job) *openRequest {
	active := d.reachableJobs()
	e := &openRequest{jobs: active, admitted: len(active), reason: d.pending.replan, mandatory: d.pending.mandatory}
	e.incremental = !e.mandatory && (e.reason.isZero() || e.reason.cause == Departure) && !d.m.hasTenants()
	if len(waiting) > 0 {
		e.jobs = append(e.jobs, waiting...)
		d.pending.admission = false
	}
	// A request for queued jobs plans for the admitted ones, too.
	d.pending.replan, d.pending.mandatory = reason{}, false
	d.sendRequest(e)
	for _, j := range e.jobs {
		if j.reportsSincePlan = 0; j.domain == d {
			j.plannedLatency = d.plannedLatencies(j)
		}
	}
	return e
}

// sendRequest sends a request out.
func (d *domain) sendRequest(e *openRequest) {
	d.m.lastTicket++
	e.ticket, e.sentAt, e.budget, e.message = d.m.lastTicket, d.m.now, d.config.Budget, d.planRequestFor(e.jobs,
		e.admitted)
	e.message.Ticket, e.message.Incremental = e.ticket, e.incremental
	d.request = e
	d.m.emit(Output{PlanOutput: PlanOutput{PlanRequest: e.message}})
}

// planRequestFor is the message that asks for plans for jobs, of which the first ones, as many as admitted says, are
// admitted.
func (d *domain) planRequestFor(jobs []*job, admitted int) *plans.Request {
	p := &plans.Request{Device: d.registered, WantSlowdowns: len(d.m.domains) > 1, Admitted: admitted,
		Budget: d.config.Budget, Reserved: d.reservedBytes(), Correction: d.lineOrEqual(),
		HostMemory: d.config.HostMemory, HostReserved: d.hostReserved(jobs), Contexts: d.stayingContexts()}
	starts := d.needExecutors(jobs)
	weights := d.m.tenantWeights(jobs)
	for i, j := range jobs {
		p.Jobs = append(p.Jobs, d.candidateFor(j))
		if p.Jobs[i].StartsProcess = starts[i]; p.Jobs[i].Profile == nil && p.Learnt == nil {
			p.Learnt = d.learnt.AllLatencies()
		}
		p.Jobs[i].Spec.Priority = cmp.Or(weights[j], p.Jobs[i].Spec.Priority)
	}
	return p
}

// candidateFor is a job as workers take it.
func (d *domain) candidateFor(j *job) plans.Candidate {
	c := plans.Candidate{Spec: j.record.Spec, Epoch: j.record.Epoch + 1, Graph: j.graph, LastReport: j.policyReport,
		Unchecked: j.unchecked,
		Remaining: d.config.Horizon, DeviceExtra: j.deviceExtra()}
	if e, known := d.expectationOf(j); known {
		c.Profile, c.Latency, c.Slack, c.Measured = e.profile, e.latency, e.slack, e.measured
	}
	if !j.record.Spec.Script {
		c.Remaining = min(c.Remaining, j.record.Spec.Iterations-j.record.Iteration)
	}
	if c.HostExtra = j.snapshotBytes; !j.isActive() {
		c.HostParked = j.hostClaim()
	}
	if last := j.newestLayout(); last != nil && !j.isStale(last) && j.domain == d {
		c.Current = &last.ProvenLayout
	}
	return c
}

// cancelRequest gives up a request that has become pointless: all its jobs are over, or it only looks for better plans
// while jobs wait that are to be planned for together with all others.
func (d *domain) cancelRequest() {
	e := d.request
	if e == nil || d.isSearching() {
		return
	}
	if d.m.migrations.ownsRequest(e) {
		if d.hasUrgentWork() {
			d.m.dropMigration()
			d.m.wakeMigrations()
		}
		return
	}
	over := !slices.ContainsFunc(e.jobs, func(j *job) bool { return !j.record.State.Over() })
	if !over && !(e.onlyImproves() && (d.pending.admission || d.inSearch) && !d.isOverfull() && !d.hasUnplannedJob()) {
		return
	}
	d.m.emit(Output{PlanOutput: PlanOutput{Cancel: e.ticket}})
	d.request = nil
	if !over && d.pending.replan.isZero() {
		d.pending.replan = e.reason
	}
}

// takeResult takes the answer to a plan request. An answer to another request than the open one of a device is ignored.
func (m *Machine) takeResult(p *plans.Result) {
	for _, d := range m.domains {
		if d.request != nil && d.request.ticket == p.Ticket {
			for i, profile := range p.NewProfiles {
				if j := d.request.jobs[i]; !j.record.State.Over() {
					d.rememberProfile(j, profile)
				}
			}
			switch {
			case d.isSearching():
				m.takeSearchResult(d, p)
			case m.migrations.ownsRequest(d.request):
				m.migrations.takeAnswer(d, p)
			default:
				d.applyResult(p)
			}
			return
		}
	}
}

// isSearching reports whether the open request belongs to a placement search.
func (d *domain) isSearching() bool {
	t := d.m.search
	return t != nil && slices.ContainsFunc(t.offers, func(a *offer) bool { return a.request == d.request })
}

// applyResult adopts the plans of the open request. The present state counts, not the one in which the request was
// sent: plans of jobs that are over are ignored.
func (d *domain) applyResult(p *plans.Result) {
	e := d.request
	d.request, d.m.changed = nil, true
	d.driftNotBefore = d.m.now + coolDownFactor*(d.m.now-e.sentAt)
	for _, j := range e.jobs {
		j.wantsReport, j.policyReport = p.WantsReports, nil
	}
	for i, j := range e.jobs {
		if j.profile != nil || j.record.State.Over() {
			continue
		}
		if e, known := d.expectationOf(j); known {
			j.profile, j.latencySlack, j.measured, j.plannedLatency = e.profile, e.slack, e.measured, e.latency
			j.latency = slices.Clone(e.latency)
		} else if profile, made := p.NewProfiles[i]; made {
			j.profile = &profile
			d.initLatencies(j)
			j.plannedLatency = slices.Clone(j.latency)
		}
	}
	switch {
	case len(p.NeverFit) > 0:
		d.rejectImpossible(e, p.NeverFit)
	case e.onlyImproves() && p.NoPlan != nil:
		d.keepOldPlans(e, p.NoPlan)
	case e.onlyImproves():
		d.adoptIfBetter(e, p.Jobs)
	default:
		d.admitPlanned(e, p)
	}
}

// rejectImpossible refuses the jobs that cannot run here even when they are alone; jobs that were taken already fail.
// The other jobs of the request are tried again.
func (d *domain) rejectImpossible(e *openRequest, why map[int]string) {
	if e.budget != d.config.Budget {
		why = nil // within another budget they may run
	}
	for i, j := range e.jobs[e.admitted:] {
		text, never := why[e.admitted+i]
		never = never && !d.m.allowPacking(j)
		switch {
		case !never:
			d.pending.admission = true
		// The batch is not refused yet.
		case j.batch != nil && d.m.findJob(j.record.Spec.Name) == j && d.m.largerUnavailable(j, d) == nil:
			d.m.refuseBatch(j.batch, text+d.m.largerDeviceHint(d))
		case j.record.State != wire.JobQueued:
		case j.deviceChosen && j.onceFitted: // another device may take it
			j.deviceChosen, d.m.needsPlacement = false, true
		case j.batch == nil || d.m.findJob(j.record.Spec.Name) == j:
			d.m.waitForLarger(j, d, text)
		}
	}
	if d.pending.replan.isZero() {
		d.pending.replan = e.reason
	}
}

// admitPlanned admits queued jobs, with plans for them and for the jobs that were admitted already. The others go on
// waiting, each with the reason. No job overtakes another that waits for memory.
func (d *domain) admitPlanned(e *openRequest, p *plans.Result) {
	if j, why := d.gangNeverFits(e, p); why != "" {
		only := d.reservedBytes() == 0 && (len(d.m.domains) == 1 || j.record.Spec.Device != "") // it can never fit
		if j.batch != nil && only {
			d.m.refuseBatch(j.batch, why)
			return
		}
		if j.batch != nil {
			d.m.takeBatch(j.batch)
		}
		d.blockReplicas(j, why)
		return
	}
	fits := max(len(p.Jobs), e.admitted)
	for _, j := range e.jobs {
		if j.unchecked, j.onceFitted = false, true; j.batch != nil {
			d.m.takeBatch(j.batch)
		}
	}
	begun, cut := d.dropPartialGangs(slices.DeleteFunc(stillQueued(e.jobs[e.admitted:fits]), d.m.isUnreachable))
	for _, j := range begun {
		j.enter(wire.JobStarting, "")
		j.record.Preempted = false
		j.deviceChosen, j.found.noRoom = false, false
		for _, o := range d.m.gang(j) { // the peers are to follow
			if d.m.needsPlacement = true; o.record.State == wire.JobQueued && o.domain != nil {
				o.domain.pending.admission = true
			}
		}
	}
	why := p.NoPlan
	for _, j := range cut {
		if why == nil {
			d.keepWaiting(j, wire.Wait{For: wire.WaitReplicas}, "waits for the other replicas")
		} else {
			d.keepWaitingForPlan(j, why)
		}
	}
	d.keepQueued(e, fits, why)
	if len(begun) == 0 { // none fits, or those that fit were stopped: others would shrink in vain
		if d.pending.replan.isZero() {
			d.pending.replan = e.reason
		}
		return
	}
	cause := e.reason
	switch {
	case len(begun) == 1:
		cause = newReason(Arrival, "job %s has come", begun[0].record.Spec.Name)
	case len(begun) > 1:
		cause = newReason(Arrival, "%d jobs have come", len(begun))
	}
	d.adopt(d.admittedPlans(e, p.Jobs), cause.newEvent())
	d.announceSpeeds()
	if e.budget != d.config.Budget && d.pending.replan.isZero() { // it has changed since the request
		d.pending.replan = newReason(Memory, "the budget is %s", budgetText(d.config.Budget))
	}
}

// keepQueued records why the jobs of a request go on waiting that have no plans: the first, after those that fit, for
// lack of plans, and the others for it.
func (d *domain) keepQueued(e *openRequest, fits int, why *plans.NoPlan) {
	for i, j := range stillQueued(e.jobs[fits:]) {
		switch {
		case d.m.allowPacking(j):
			continue
		case why == nil:
			d.keepWaiting(j, wire.Wait{For: wire.WaitTurn},
				fmt.Sprintf("job %s is before it in the queue", e.jobs[fits].record.Spec.Name))
			continue
		}
		switch d.keepWaitingForPlan(j, why); {
		case i > 0 || fits > 0 || why.Need == 0 || d.reservedBytes() == 0:
		case !d.memoryUnchanged(e):
			d.m.retryAdmission(d) // the memory has changed: it may fit by now
		default: // others may begin before it
			w := wire.Wait{For: wire.WaitBudget, Bytes: j.record.Wait.DeviceBytes()}
			j.waitFor(w, j.record.Reason+", but for what executors may have that cannot be reached")
			d.pending.admission = true
		}
		why = nil
	}
}

// stillQueued are those of some jobs that are still Queued.
func stillQueued(jobs []*job) []*job {
	return slices.DeleteFunc(slices.Clone(jobs), func(j *job) bool { return j.record.State != wire.JobQueued })
}

// keepWaitingForPlan records that a job goes on waiting, as there is no plan with it.
func (d *domain) keepWaitingForPlan(j *job, why *plans.NoPlan) {
	need, on := "it and the running jobs need", ""
	if slices.ContainsFunc(d.m.gang(j), func(o *job) bool { return o != j && o.domain == d }) {
		need = "it, its other replicas and the running jobs need" // this holds also where nothing runs
	}
	if len(d.m.domains) > 1 && why.Need > 0 {
		on = " of device " + d.config.Name
	}
	w, text := wire.Wait{}, why.Why
	switch {
	case why.OnHost:
		w = wire.Wait{For: wire.WaitHostMemory, Bytes: why.Need - why.Budget}
		text = fmt.Sprintf("waits for %s of host memory: %s %s of %s", w.Bytes, need, why.Need, why.Budget)
	case why.Need > 0:
		w = wire.Wait{For: wire.WaitMemory, Bytes: why.Need - why.Budget}
		text = fmt.Sprintf("waits for %s: %s %s of %s%s", w.Bytes, need, why.Need, why.Budget, why.Contexts.Suffix())
	}
	d.keepWaiting(j, w, text+on)
}

// keepWaiting records that a job goes on waiting.
func (d *domain) keepWaiting(j *job, w wire.Wait, why string) {
	d.m.needsPlacement = d.m.needsPlacement || j.deviceChosen // it may fit another device
	j.deviceChosen = false
	d.m.announceWait(j, w, why)
}

// adoption is a plan that an admitted job may change to.
type adoption struct {
	job *job
	plans.PlannedJob
}

// admittedPlans are the plans of a request whose jobs are admitted. A job that was told to stop or to park keeps its
// plan, and changes to its new share of the link only.
func (d *domain) admittedPlans(e *openRequest, plans []plans.PlannedJob) []adoption {
	var list []adoption
	for i, p := range plans {
		j := e.jobs[i]
		// A script may have recorded another graph since the request.
		late := p.Layout != nil && j.isStale(&layout{ProvenLayout: *p.Layout})
		if !j.canChangePlan() || late {
			p.Layout, p.Gain, p.Transition = nil, 0, 0
		}
		if j.isActive() {
			list = append(list, adoption{j, p})
		}
	}
	return list
}

// adoptIfBetter adopts plans for the admitted jobs if they are worth the time of the transitions, or if jobs have no
// plan or have to shrink.
func (d *domain) adoptIfBetter(e *openRequest, jobs []plans.PlannedJob) {
	d.lastNoPlan = ""
	plans := d.admittedPlans(e, jobs)
	if d.isOverfull() {
		if held := d.takenBytes(); d.config.Budget > 0 && held > d.config.Budget {
			d.m.emitEvent(Event{Kind: Shrinking, Amounts: Amounts{held, d.config.Budget, d.contexts()}})
		}
		d.adopt(plans, e.reason.newEvent())
		return
	}
	var gain, transition time.Duration
	for _, p := range plans {
		gain, transition = gain+p.Gain, transition+p.Transition
	}
	if d.hasUnplannedJob() || e.mandatory {
		d.adopt(plans, e.reason.newEvent())
	} else if transition > 0 && gain > transition {
		adopted := e.reason.newEvent()
		adopted.Gain, adopted.Transition = gain, transition
		d.adopt(plans, adopted)
	} else {
		d.m.wakeMigrations()
		for _, p := range plans { // jobs keep plans that are about as good
			p.job.record.Speed, p.job.record.Slowdown = p.Speed, p.Slowdown
		}
	}
}

// keepOldPlans goes on when a request had no plans. Where jobs have to shrink, or have no plan, those that have no
// memory yet wait again.
func (d *domain) keepOldPlans(e *openRequest, why *plans.NoPlan) {
	if (d.isOverfull() || d.hasUnplannedJob()) && d.requeueAllAdmitted(e.reason.text) {
		d.pending.replan, d.pending.admission = e.reason, true
		return
	}
	told := e.reason.newEvent()
	told.Kind, told.Detail = Unplanned, why.Why
	if d.isOverfull() {
		told = Event{Kind: Stuck, Amounts: Amounts{d.takenBytes(), d.config.Budget, d.contexts()}, Detail: why.Why}
	}
	for _, j := range e.jobs {
		d.m.recordUnplanned(j, why)
	}
	said := fmt.Sprint(told.Kind, told.Bytes, told.Budget, told.Contexts, told.Detail)
	if d.lastNoPlan != said { // otherwise it would be told at every drift
		d.lastNoPlan = said
		d.m.emitEvent(told)
	}
}

// requeueAllAdmitted has the admitted jobs wait again that have no memory yet, and reports whether there are any. They
// may never fit the present budget.
func (d *domain) requeueAllAdmitted(reason string) (any bool) {
	for _, j := range d.activeJobs() {
		if j.record.State == wire.JobStarting && j.claim().IsZero() {
			d.requeueAdmitted(j, wire.Wait{For: wire.WaitMemory}, reason)
			any = true
		}
	}
	return any
}

// requeueAdmitted has an admitted job wait again that has no memory yet.
func (d *domain) requeueAdmitted(j *job, w wire.Wait, why string) {
	d.m.dropDelivered(j, j.deliveredLayouts(), j.record.Park == "" && !j.record.Spec.Script)
	j.enter(wire.JobQueued, why)
	j.waitFor(w, why)
	j.layouts, j.unchecked = nil, true
	if j.record.Park == "" && !j.record.Spec.Script {
		j.record.Executor = ""
	}
}

// adopt makes plans the newest of their jobs.
func (d *domain) adopt(plans []adoption, e Event) {
	for _, p := range plans {
		j := p.job
		j.record.Speed, j.record.Slowdown = p.Speed, p.Slowdown
		j.reportsSincePlan = 0
		j.record.Device = d.config.Device
		if d.config.Limited {
			j.record.Link = wire.Rates{Out: p.Out.Rate, In: p.In.Rate}
		}
		if p.Layout != nil && p.Layout.Epoch() > j.record.Epoch {
			j.record.Latencies = p.Latencies
			j.addLayout(p.Layout, e.Reason)
			d.m.addCount(j, func(t *Counters) { t.countPlan(e.Cause) })
			e.Plans++
		}
	}
	if e.Plans > 0 {
		e.Kind = Adopted
		d.m.emitEvent(e)
	}
	d.m.wakeMigrations()
}

// isOverfull reports whether the newest plans of all jobs do not fit the budget together, which was larger when they
// were made.
func (d *domain) isOverfull() bool {
	var sum memory.Sum
	for _, j := range d.reachableJobs() {
		if l := j.newestLayout(); l != nil {
			sum = sum.Add(j.claimWith(l))
		}
	}
	taken := sum.Bytes() + d.reservedBytes() + d.stayingContexts().Sum() + d.startingContexts().Sum()
	return d.config.Budget > 0 && taken > d.config.Budget || d.isHostOverfull()
}

// hasUnplannedJob reports whether an admitted job has no plan for its present graph. The controller may have been
// killed just when the plan was made.
func (d *domain) hasUnplannedJob() bool {
	for j := range d.jobs() {
		if j.canChangePlan() && (j.newestLayout() == nil || j.isStale(j.newestLayout())) {
			return true
		}
	}
	return false
}
