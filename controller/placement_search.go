package controller

import (
	"cmp"
	"fmt"
	"math"
	"reflect"
	"slices"
	"time"

	"tensile/controller/plans"
	"tensile/graph"
	"tensile/scheduler"
	"tensile/scheduler/planner"
	"tensile/wire"
)

// placementSearch tries a job on several devices. A device is asked for plans for the jobs that train there, those that
// wait for it alone and the job. The job goes to the device where the sum over jobs of weight x slowdown grows least by
// these plans, and the plans are adopted. Of equal sums the first device by name is taken.
//
// Not all devices are asked. The latencies of the jobs give a lower bound of the growth, whatever the plans. Devices
// are asked in the order of these bounds until none of the others can be better than the best answer; of devices that
// are alike only the first by name is asked.
type placementSearch struct {
	job *job
	// offers has one offer for each device, by name.
	offers []*offer
	// weight is what a job's slowdown is worth (jobWorth).
	weight func(*job) float64
}

// offer is one device of a search or of a migration, with the plans that it has been asked for.
type offer struct {
	domain *domain
	// prospect is the device with the job. nil: latencies of a job there are not known yet.
	prospect *prospect
	// request asks for the plans. nil: the device was not asked.
	request *openRequest
	// index is where the job is among the jobs of request.
	index int
	// answer is nil until the plans have come.
	answer *plans.Result
}

// prospect is a device with the job of a search, as it was when it was first looked at: all that plans depend on.
type prospect struct {
	// jobs are those that are planned for, the job of the search last.
	jobs []plans.Candidate
	// slowdowns are the present ones of the other jobs.
	slowdowns []float64
	// demands are those of jobs.
	demands []planner.Demand
	// timeAlone is how long an iteration of the job of the search takes alone.
	timeAlone time.Duration
	// tooSmall says that single ops need more memory than there is.
	tooSmall     bool
	reserved     graph.Bytes
	hostReserved graph.Bytes
	contexts     wire.Contexts
	// hasWaiting says that other jobs wait for the device.
	hasWaiting bool
}

// beginSearch begins to search a device for a job, of several.
func (m *Machine) beginSearch(j *job, list []*domain) {
	m.search = &placementSearch{job: j, weight: m.jobWorth(j)}
	for _, d := range list {
		m.search.offers = append(m.search.offers, &offer{domain: d})
	}
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
	next := t.nextOffer()
	switch {
	case next == nil:
		m.decideSearch()
	case next.domain.request == nil: // otherwise it is asked when its open request is answered
		next.requestWith(t.job)
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

// nextOffer is the device that is to be asked next. nil: no other can be better than the best answer.
func (t *placementSearch) nextOffer() *offer {
	for _, a := range t.offers {
		if a.prospect == nil {
			a.prospect = a.domain.prospectFor(t.job, t.weight)
		}
		if a.prospect == nil && a.answer == nil {
			return a
		}
	}
	fastest := t.fastestAlone()
	var next *offer
	var least float64
	for _, a := range t.offers {
		asked := func(b *offer) bool { return b.answer != nil && a.isAlike(b) }
		if a.answer != nil || slices.ContainsFunc(t.offers, asked) {
			continue
		}
		if bound := a.lowerBound(fastest); next == nil || bound < least {
			next, least = a, bound
		}
	}
	best := t.bestOffer(fastest)
	if next == nil || best == nil {
		return next
	}
	grows := best.growth(fastest, t.weight)
	if grows < least || grows == least && slices.Index(t.offers, best) < slices.Index(t.offers, next) {
		return nil
	}
	return next
}

// fastestAlone is how long an iteration of the job takes alone on the fastest of the devices.
func (t *placementSearch) fastestAlone() time.Duration {
	fastest := time.Duration(math.MaxInt64)
	for _, a := range t.offers {
		switch {
		case a.answer != nil && a.jobPlan() != nil && a.jobPlan().Alone > 0:
			fastest = min(fastest, a.jobPlan().Alone)
		case a.prospect != nil:
			fastest = min(fastest, max(1, a.prospect.timeAlone))
		}
	}
	return fastest
}

// prospectFor looks at a device with a job. nil: something that plans depend on is not known.
func (d *domain) prospectFor(j *job, weight func(*job) float64) *prospect {
	if d.registered == nil {
		return nil // its plans may use other latencies under load
	}
	jobs := append(d.reachableJobs(), j)
	s := &prospect{reserved: d.reservedBytes(), hostReserved: d.hostReserved(jobs), contexts: d.stayingContexts(),
		hasWaiting: len(d.otherWaitingJobs(j)) > 0}
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
		s.jobs, s.demands = append(s.jobs, c), append(s.demands, of)
		if o != j {
			s.slowdowns = append(s.slowdowns, cmp.Or(o.record.Slowdown, 1))
		}
		needs = append(needs, d.largestWorkingSet(o, c.Profile))
	}
	s.timeAlone, s.tooSmall = plans.TotalTime(s.jobs[len(jobs)-1].Latency), d.isTooSmall(needs)
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

// lowerBound is by how much the sum of weighted slowdowns grows at least on a device.
func (a *offer) lowerBound(fastest time.Duration) float64 {
	s := a.prospect
	switch {
	case s == nil:
		return math.Inf(-1)
	case s.tooSmall:
		return math.Inf(1)
	}
	demands := slices.Clone(s.demands)
	last := &demands[len(demands)-1]
	last.Weight *= float64(s.timeAlone) / float64(fastest)
	var was float64
	for i, slowdown := range s.slowdowns {
		was += demands[i].Weight * slowdown
	}
	return planner.LeastSlowdowns(demands) - was
}

// isAlike reports whether plans with the job on a device are those on another, and as much better or worse than the
// present ones.
func (a *offer) isAlike(b *offer) bool {
	s, o := a.prospect, b.prospect
	if s == nil || o == nil || s.hasWaiting || o.hasWaiting || s.reserved != o.reserved ||
		s.hostReserved != o.hostReserved ||
		s.contexts != o.contexts || !slices.Equal(s.slowdowns, o.slowdowns) || !slices.Equal(s.demands, o.demands) ||
		!slices.EqualFunc(s.jobs, o.jobs, sameCandidate) {
		return false
	}
	c, e := a.domain.config, b.domain.config
	c.Name, c.Lease, e.Name, e.Lease = "", "", "", ""
	return reflect.DeepEqual(c, e)
}

// sameCandidate reports whether two jobs get the same plans.
func sameCandidate(c, e plans.Candidate) bool {
	return c.LastReport == nil && e.LastReport == nil && c.Spec.Graph == e.Spec.Graph &&
		c.Spec.Priority == e.Spec.Priority &&
		c.Spec.SwapRate == e.Spec.SwapRate && c.Spec.Least == e.Spec.Least && c.Measured == e.Measured &&
		c.Unchecked == e.Unchecked && c.HostExtra == e.HostExtra && c.HostParked == e.HostParked &&
		c.DeviceExtra == e.DeviceExtra &&
		c.StartsProcess == e.StartsProcess && slices.Equal(c.Latency, e.Latency) && slices.Equal(c.Slack, e.Slack)
}

// takeSearchResult takes the plans of the search on a device.
func (m *Machine) takeSearchResult(d *domain, p *plans.Result) {
	for _, a := range m.search.offers {
		if a.domain == d {
			a.answer = p
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
	if best := t.bestOffer(t.fastestAlone()); best != nil {
		m.chooseDevice(t, best)
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
	if nearest := t.nearestOffer(); nearest != nil {
		m.chooseDevice(t, nearest)
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
		d.m.emit(Output{Cancel: a.request.ticket})
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

// bestOffer is the offer by which the sum of weighted slowdowns grows least, of those with plans. nil: the job fits
// none of the devices that were asked. The job's own slowdown counts against its speed alone on the fastest of all
// devices.
func (t *placementSearch) bestOffer(fastest time.Duration) (best *offer) {
	var least float64
	for _, a := range t.offers { // by name
		if a.answer == nil || a.jobPlan() == nil {
			continue
		}
		if grows := a.growth(fastest, t.weight); best == nil || grows < least {
			best, least = a, grows
		}
	}
	return best
}

// growth is by how much the sum of weighted slowdowns grows by the plans of the offer.
func (a *offer) growth(fastest time.Duration, weight func(*job) float64) (sum float64) {
	for i, j := range a.request.jobs[:a.request.admitted] {
		sum += weight(j) * (a.answer.Jobs[i].Slowdown - cmp.Or(j.record.Slowdown, 1))
	}
	p := a.jobPlan()
	return sum + weight(a.request.jobs[a.index])*p.Slowdown*float64(p.Alone)/float64(fastest)
}

// nearestOffer is the offer that lacks least of the memory that the job needs, of the devices on which it might fit.
// nil: there is none.
func (t *placementSearch) nearestOffer() (found *offer) {
	var least graph.Bytes
	for _, a := range t.offers {
		if a.answer == nil { // a device that is alike was asked
			continue
		}
		if _, never := a.answer.NeverFit[a.index]; never {
			continue
		}
		lacks := graph.Bytes(math.MaxInt64)
		if w := a.answer.NoPlan; w != nil && w.Need > 0 {
			lacks = w.Need - w.Budget
		}
		if found == nil || lacks < least {
			found, least = a, lacks
		}
	}
	return found
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
