package controller

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"tensile/controller/place"
	"tensile/controller/plans"
	"tensile/graph"
	"tensile/scheduler"
	"tensile/scheduler/planner"
	"tensile/wire"
)

// placementSearch tries a job on several devices: package place says which is asked for plans next, and which is best.
// The plans of that one are adopted.
type placementSearch struct {
	place.Search
	job *job
	// offers are those of Search, with the plans that devices were asked for.
	offers []*offer
	// weight is what a job's slowdown is worth (jobWorth).
	weight func(*job) float64
}

// offer is one device of a search or of a migration, with the plans that it has been asked for.
type offer struct {
	domain *domain
	// request asks for the plans. nil: the device was not asked.
	request *openRequest
	// index is where the job is among the jobs of request.
	index int
	// answer is nil until the plans have come.
	answer *plans.Result
}

// beginSearch begins to search a device for a job, of several.
func (m *Machine) beginSearch(j *job, list []*domain) {
	t := &placementSearch{job: j, weight: m.jobWorth(j)}
	t.Offers = make([]place.Offer, len(list))
	for _, d := range list {
		t.offers = append(t.offers, &offer{domain: d})
	}
	m.search = t
	m.advanceSearch()
}

// advanceSearch asks the next device of the search when the one before has answered, or decides. Devices that may still
// be asked request no plans that are only better.
func (m *Machine) advanceSearch() {
	t := m.search
	for _, a := range t.offers {
		switch {
		case a.request == nil:
			a.domain.inSearch = true
			a.domain.cancelRequest()
		case a.answer == nil:
			return
		}
	}
	t.Weight = t.weight(t.job) // somebody may have changed its priority
	t.lookAhead()
	switch next := t.Next(); {
	case next < 0:
		m.decideSearch()
	case t.offers[next].domain.request == nil: // otherwise it is asked when its open request is answered
		t.offers[next].requestWith(t.job)
	}
}

// lookAhead looks at the devices with the job, until something that plans depend on is not known of one.
func (t *placementSearch) lookAhead() {
	for i, a := range t.offers {
		o := &t.Offers[i]
		if o.Prospect == nil {
			o.Prospect = a.domain.prospectFor(t.job, t.weight)
		}
		if o.Prospect == nil && o.Promise == nil {
			return
		}
	}
}

// requestWith requests plans with a job.
func (a *offer) requestWith(j *job) {
	d := a.domain
	with := append(d.otherWaitingJobs(j), j)
	d.m.sortQueue(with)
	a.request = d.requestPlans(with)
	a.index = slices.Index(a.request.jobs, j)
}

// otherWaitingJobs are the jobs that wait for this device alone, beside the one of a search.
func (d *domain) otherWaitingJobs(j *job) []*job {
	return slices.DeleteFunc(d.waitingJobs(), func(o *job) bool { return o == j || d.m.needsSearch(o) })
}

// prospectFor looks at a device with a job. nil: something that plans depend on is not known.
func (d *domain) prospectFor(j *job, weight func(*job) float64) *place.Prospect {
	if d.registered == nil {
		return nil // its plans may use other latencies under load
	}
	jobs := append(d.reachableJobs(), j)
	facts := d.config
	facts.Name, facts.Lease = "", ""
	s := &place.Prospect{Facts: facts, Reserved: d.reservedBytes(), HostReserved: d.hostReserved(jobs),
		Contexts: d.stayingContexts(), HasWaiting: len(d.otherWaitingJobs(j)) > 0}
	var needs []graph.Bytes
	starts := d.needExecutors(jobs)
	weights := d.m.tenantWeights(jobs)
	for i, o := range jobs {
		c := d.candidateFor(o)
		c.Spec.Priority = cmp.Or(weights[o], c.Spec.Priority)
		if c.Profile == nil {
			return nil
		}
		c.StartsProcess = starts[i]
		of := c.Profile.Demand(c.Latency, d.config.Sharing)
		of.Weight = weight(o)
		s.Jobs, s.Demands = append(s.Jobs, c), append(s.Demands, of)
		if o != j {
			s.Slowdowns = append(s.Slowdowns, cmp.Or(o.record.Slowdown, 1))
		}
		needs = append(needs, d.largestWorkingSet(o, c.Profile))
	}
	s.TimeAlone, s.TooSmall = plans.TotalTime(s.Jobs[len(jobs)-1].Latency), d.isTooSmall(needs)
	return s
}

// largestWorkingSet is the largest working set of an op of a job, in bytes.
func (d *domain) largestWorkingSet(j *job, p *planner.Profile) graph.Bytes {
	if k := d.m.profiles[d.profileKeyOf(j)]; k != nil {
		return k.workingSet
	}
	return scheduler.WorkingSetOf(p.Job("", 0, j.graph), d.config.Align).Bytes
}

// isTooSmall reports whether no plans fit the device's budget because single ops of the jobs need more.
func (d *domain) isTooSmall(needs []graph.Bytes) bool {
	var sum graph.Bytes
	for _, need := range needs {
		if d.config.sharesMemory() {
			sum = max(sum, need)
		} else {
			sum += need
		}
	}
	return d.config.Budget > 0 && sum > d.config.Budget-d.reservedBytes()-d.stayingContexts().Sum()
}

// takeSearchResult takes the plans of the search on a device.
func (m *Machine) takeSearchResult(d *domain, p *plans.Result) {
	t := m.search
	for i, a := range t.offers {
		if a.domain == d {
			a.answer = p
			t.Offers[i].Promise = a.promise(t.weight)
		}
	}
	if m.changed, m.needsPlacement = true, true; !m.search.job.isFree() {
		m.abandonSearch()
		return
	}
	m.advanceSearch()
}

// decideSearch ends a search by what the devices have answered.
func (m *Machine) decideSearch() {
	t := m.search
	m.search = nil
	if best := t.Best(); best >= 0 {
		m.chooseDevice(t, t.offers[best])
		return
	}
	if m.allowPacking(t.job) {
		for _, a := range t.offers {
			a.release()
		}
		return
	}
	for _, j := range m.gangOrSelf(t.job) {
		j.found.noRoom = true
	}
	if nearest := t.LeastLacking(); nearest >= 0 {
		m.chooseDevice(t, t.offers[nearest])
		return
	}
	for _, a := range t.offers {
		a.release()
	}
	m.rejectEverywhere(t)
}

// chooseDevice has the job of a search belong to the device of an offer, and adopts its plans unless devices are still
// to be searched for other jobs of its batch or gang.
func (m *Machine) chooseDevice(t *placementSearch, on *offer) {
	j := t.job
	for _, a := range t.offers {
		if a != on {
			a.release()
		}
	}
	m.bindDevice(j, on.domain)
	j.deviceChosen = !j.found.noRoom
	j.unchecked = j.unchecked || j.deviceChosen && j.isBlocked()
	with := m.gang(j)
	if b := j.batch; b != nil && b.hasUnplaced() || !j.found.noRoom && m.hasUnplacedPeer(j) {
		on.release()
		return
	} else if b != nil {
		with = b.jobs
	}
	for _, o := range with {
		if o.domain != nil {
			o.domain.pending.admission = true
		}
	}
	on.domain.applyResult(on.answer)
}

// release gives up the plans of an offer.
func (a *offer) release() {
	d := a.domain
	if a.request == nil || d.request != a.request {
		return
	}
	if d.request = nil; a.answer == nil {
		d.m.emit(Output{PlanOutput: PlanOutput{Cancel: a.request.ticket}})
	}
	if len(a.request.jobs) > a.request.admitted+1 {
		d.pending.admission = true
	}
	if d.pending.replan.isZero() {
		d.pending.replan, d.pending.mandatory = a.request.reason, a.request.mandatory
	}
}

// abandonSearch ends a search whose job waits for no device any more, or of which a device has gone.
func (m *Machine) abandonSearch() {
	for _, a := range m.search.offers {
		a.release()
	}
	m.search, m.needsPlacement = nil, true
}

// jobPlan is the plan for the job of the search. nil: the job does not fit there now.
func (a *offer) jobPlan() *plans.PlannedJob {
	if len(a.answer.NeverFit) > 0 || a.index >= len(a.answer.Jobs) {
		return nil
	}
	return &a.answer.Jobs[a.index]
}

// promise is what the plans of an offer promise.
func (a *offer) promise(weight func(*job) float64) *place.Promise {
	p := &place.Promise{Job: a.jobPlan(), Lacks: math.MaxInt64}
	if w := a.answer.NoPlan; w != nil && w.Need > 0 {
		p.Lacks = w.Need - w.Budget
	}
	if _, p.Never = a.answer.NeverFit[a.index]; p.Job == nil {
		return p
	}
	for i, j := range a.request.jobs[:a.request.admitted] {
		p.Others += weight(j) * (a.answer.Jobs[i].Slowdown - cmp.Or(j.record.Slowdown, 1))
	}
	return p
}

// rejectEverywhere refuses a job that can run on no device, not even when it is alone; a job that was taken already
// fails. Where a larger device may take it some day, it waits for that. The reason given is that of the largest device,
// of equal ones the first by name.
func (m *Machine) rejectEverywhere(t *placementSearch) {
	var on *offer
	for _, a := range t.offers {
		// A device that was not asked is like one that was.
		if a.answer != nil && (on == nil || a.domain.hasMoreMemory(on.domain)) {
			on = a
		}
	}
	text := on.answer.NeverFit[on.index]
	if n := len(t.offers); n > 1 {
		text = fmt.Sprintf("none of %d devices can run it; on the largest, %s: %s", n, on.domain.config.Name, text)
	}
	if t.job.batch != nil && m.largerUnavailable(t.job, on.domain) == nil {
		m.refuseBatch(t.job.batch, text)
	} else {
		m.waitForLarger(t.job, on.domain, text)
	}
}

// hasMoreMemory reports whether a device has more memory than another.
func (d *domain) hasMoreMemory(o *domain) bool {
	return o.config.Budget > 0 && (d.config.Budget == 0 || d.config.Budget > o.config.Budget)
}

// largerUnavailable is a device larger than d that may take a job some day: it is out of reach or drained now. nil:
// there is none.
func (m *Machine) largerUnavailable(j *job, d *domain) *domain {
	i := slices.IndexFunc(m.domains, func(o *domain) bool {
		pinned := j.record.Spec.Device != "" && j.record.Spec.Device != o.config.Name
		return o.hasMoreMemory(d) && o.registered != nil && (o.isDrained() || !o.canStartJobs()) && !pinned &&
			!j.record.Spec.Script &&
			(!j.boundToBits() || j.record.Device == o.config.Device)
	})
	if i < 0 {
		return nil
	}
	return m.domains[i]
}

// waitForLarger is for a job that can run on none of the devices that may take it now, of which d is the largest. The
// job waits for a larger device that is out of reach or drained, or for a larger budget if it fitted once; otherwise it
// fails.
func (m *Machine) waitForLarger(j *job, d *domain, text string) {
	why, away := "waits for a larger budget: ", m.largerUnavailable(j, d)
	if away == nil {
		text += m.largerDeviceHint(d)
	}
	switch {
	case away != nil && away.isDrained():
		why = fmt.Sprintf("waits for device %s, which is drained and larger: ", away.recordName())
	case away != nil:
		why = fmt.Sprintf("waits for device %s, which is out of reach and larger: ", away.recordName())
	case !j.onceFitted:
		m.endJob(j, wire.JobFailed, text, nil)
		return
	}
	if j.batch != nil {
		m.takeBatch(j.batch)
	}
	j.unchecked = false
	m.announceWait(j, wire.Wait{For: wire.WaitBudget}, why+text)
}
