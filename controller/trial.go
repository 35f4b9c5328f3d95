package controller

import (
	"cmp"
	"fmt"
	"math"
	"reflect"
	"slices"
	"time"

	"tensile/graph"
	"tensile/scheduler"
	"tensile/scheduler/planner"
	"tensile/wire"
)

// trial is a job that is tried on several devices. Where it is, plans are made for the jobs that are there, those that
// wait there and the job. It goes where the sum over jobs of weight x slowdown grows least by these plans, with the
// plan that was made; equal sums are decided by name.
//
// Not all devices are asked for plans. From the latencies of the jobs there follows by how much the sum grows at least,
// whatever the plans. Devices are asked one after the other, in the order of these bounds, until none of those that are
// left can be better than the best answer; and of devices that are alike the first by name alone.
type trial struct {
	job    *job
	list   []*attempt // by name
	weight func(*job) float64
}

// attempt is a trial on one device.
type attempt struct {
	domain *domain
	scene  *scene   // nil: latencies of a job there are not known yet
	errand *errand  // nil: it was not asked
	at     int      // of the job in the errand
	answer *Planned // nil: it has not come
}

// scene is a device with the job, as it was when it was looked at first: what its plans depend on.
type scene struct {
	jobs         []Candidate // that are planned for, the job last
	slowdowns    []float64   // that the others have now
	demands      []planner.Demand
	alone        time.Duration // of an iteration of the job
	small        bool          // single ops need more memory than there is
	reserved     graph.Bytes
	hostReserved graph.Bytes
	staying      wire.Contexts
	waits        bool // others wait for the device
}

// beginTrial has plans with a job made on some of several devices.
func (m *Machine) beginTrial(j *job, list []*domain) {
	m.trial = &trial{job: j, weight: m.worth(j)}
	for _, d := range list {
		m.trial.list = append(m.trial.list, &attempt{domain: d})
	}
	m.proceed()
}

// proceed asks the next device of a trial, when the one before has answered, or decides. Those that may still be asked
// plan for nothing that is only better.
func (m *Machine) proceed() {
	t := m.trial
	for _, a := range t.list {
		switch {
		case a.errand == nil:
			a.domain.sought = true
			a.domain.cancel()
		case a.answer == nil:
			return
		}
	}
	next := t.next()
	switch {
	case next == nil:
		m.decide()
	case next.domain.errand == nil: // else it is asked when that is over
		next.ask(t.job)
	}
}

// ask has plans made with a job.
func (a *attempt) ask(j *job) {
	d := a.domain
	with := append(d.waitingBeside(j), j)
	d.m.inOrder(with)
	a.errand = d.send(with)
	a.at = slices.Index(a.errand.jobs, j)
}

// waitingBeside are the jobs that wait for this device alone, beside one that is tried.
func (d *domain) waitingBeside(j *job) []*job {
	return slices.DeleteFunc(d.waiting(), func(o *job) bool { return o == j || d.m.roams(o) })
}

// next is the device that is to be asked next; nil: no other can be better than the best answer.
func (t *trial) next() *attempt {
	for _, a := range t.list {
		if a.scene == nil {
			a.scene = a.domain.scene(t.job, t.weight)
		}
		if a.scene == nil && a.answer == nil {
			return a
		}
	}
	fastest := t.fastest()
	var next *attempt
	var least float64
	for _, a := range t.list {
		asked := func(b *attempt) bool { return b.answer != nil && a.alike(b) }
		if a.answer != nil || slices.ContainsFunc(t.list, asked) {
			continue
		}
		if bound := a.bound(fastest); next == nil || bound < least {
			next, least = a, bound
		}
	}
	best := t.best(fastest)
	if next == nil || best == nil {
		return next
	}
	grows := best.grows(fastest, t.weight)
	if grows < least || grows == least && slices.Index(t.list, best) < slices.Index(t.list, next) {
		return nil
	}
	return next
}

// fastest is how long an iteration of the job takes alone on the fastest of the devices.
func (t *trial) fastest() time.Duration {
	fastest := time.Duration(math.MaxInt64)
	for _, a := range t.list {
		switch {
		case a.answer != nil && a.fits() != nil && a.fits().Alone > 0:
			fastest = min(fastest, a.fits().Alone)
		case a.scene != nil:
			fastest = min(fastest, max(1, a.scene.alone))
		}
	}
	return fastest
}

// scene looks at a device with a job; nil: something that plans depend on is not known.
func (d *domain) scene(j *job, weight func(*job) float64) *scene {
	if d.brought == nil {
		return nil // plans for it may reckon with other latencies under load
	}
	jobs := append(d.reachable(), j)
	s := &scene{reserved: d.reserved(), hostReserved: d.hostReserved(jobs), staying: d.staying(),
		waits: len(d.waitingBeside(j)) > 0}
	var needs []graph.Bytes
	starts := d.starts(jobs)
	var weights map[*job]int
	if d.m.tenanted() {
		weights = d.m.weights(jobs)
	}
	for i, o := range jobs {
		c := d.candidate(o)
		if w := weights[o]; w > 0 {
			c.Spec.Priority = w
		}
		if c.Profile == nil {
			return nil
		}
		c.Starts = starts[i]
		of := c.Profile.Demand(c.Latency, d.config.Sharing)
		of.Weight = weight(o)
		s.jobs, s.demands = append(s.jobs, c), append(s.demands, of)
		if o != j {
			s.slowdowns = append(s.slowdowns, cmp.Or(o.record.Slowdown, 1))
		}
		needs = append(needs, d.need(o, c.Profile))
	}
	s.alone, s.small = total(s.jobs[len(jobs)-1].Latency), d.tooSmall(needs)
	return s
}

// need is the largest working set of a job.
func (d *domain) need(j *job, p *planner.Profile) graph.Bytes {
	if k := d.m.kinds[d.kind(j)]; k != nil {
		return k.need
	}
	return scheduler.WorkingSetOf(p.Job("", 0, j.graph), d.config.Align).Bytes
}

// tooSmall reports whether no plans fit the device's budget since single ops of the jobs need more.
func (d *domain) tooSmall(needs []graph.Bytes) bool {
	var sum graph.Bytes
	for _, need := range needs {
		if d.config.shares() {
			sum = max(sum, need)
		} else {
			sum += need
		}
	}
	return d.config.Budget > 0 && sum > d.config.Budget-d.reserved()-d.staying().Sum()
}

// bound is by how much the sum of weighted slowdowns grows on a device at least.
func (a *attempt) bound(fastest time.Duration) float64 {
	s := a.scene
	switch {
	case s == nil:
		return math.Inf(-1)
	case s.small:
		return math.Inf(1)
	}
	demands := slices.Clone(s.demands)
	last := &demands[len(demands)-1]
	last.Weight *= float64(s.alone) / float64(fastest)
	var was float64
	for i, slowdown := range s.slowdowns {
		was += demands[i].Weight * slowdown
	}
	return planner.LeastSlowdowns(demands) - was
}

// alike reports whether plans with the job on a device are those on another, and by as much better or worse than what
// is there now.
func (a *attempt) alike(b *attempt) bool {
	s, o := a.scene, b.scene
	if s == nil || o == nil || s.waits || o.waits || s.reserved != o.reserved || s.hostReserved != o.hostReserved ||
		s.staying != o.staying || !slices.Equal(s.slowdowns, o.slowdowns) || !slices.Equal(s.demands, o.demands) ||
		!slices.EqualFunc(s.jobs, o.jobs, like) {
		return false
	}
	c, e := a.domain.config, b.domain.config
	c.Name, c.Lease, e.Name, e.Lease = "", "", "", ""
	return reflect.DeepEqual(c, e)
}

// like reports whether a job is planned for as another.
func like(c, e Candidate) bool {
	return c.Last == nil && e.Last == nil && c.Spec.Graph == e.Spec.Graph && c.Spec.Priority == e.Spec.Priority &&
		c.Spec.SwapRate == e.Spec.SwapRate && c.Spec.Least == e.Spec.Least && c.Measured == e.Measured &&
		c.Fresh == e.Fresh && c.Beside == e.Beside && c.Rests == e.Rests && c.Beyond == e.Beyond &&
		c.Starts == e.Starts && slices.Equal(c.Latency, e.Latency) && slices.Equal(c.Slack, e.Slack)
}

// tried takes the plans of a trial on a device.
func (m *Machine) tried(d *domain, p *Planned) {
	for _, a := range m.trial.list {
		if a.domain == d {
			a.answer = p
		}
	}
	if m.changed, m.look = true, true; !m.trial.job.free() {
		m.abandon()
		return
	}
	m.proceed()
}

// decide ends a trial by what the devices have answered.
func (m *Machine) decide() {
	t := m.trial
	m.trial = nil
	if best := t.best(t.fastest()); best != nil {
		m.choose(t, best)
		return
	}
	if m.denser(t.job) {
		for _, a := range t.list {
			a.release()
		}
		return
	}
	for _, j := range m.all(t.job) {
		j.full = true
	}
	if nearest := t.nearest(); nearest != nil {
		m.choose(t, nearest)
		return
	}
	for _, a := range t.list {
		a.release()
	}
	m.nowhere(t)
}

// choose has a job belong to the device of an attempt, with the plans that were made unless others of its batch are
// still to be tried.
func (m *Machine) choose(t *trial, on *attempt) {
	j := t.job
	for _, a := range t.list {
		if a != on {
			a.release()
		}
	}
	m.bind(j, on.domain)
	if j.chosen = !j.full; j.chosen {
		j.stuck = false
	}
	with := m.siblings(j)
	if b := j.batch; b != nil && b.unsettled() || !j.full && m.unsettled(j) {
		on.release()
		return
	} else if b != nil {
		with = b.jobs
	}
	for _, o := range with {
		if o.domain != nil {
			o.domain.want.admission = true
		}
	}
	on.domain.planned(on.answer)
}

// release gives up the plans of an attempt.
func (a *attempt) release() {
	d := a.domain
	if a.errand == nil || d.errand != a.errand {
		return
	}
	if d.errand = nil; a.answer == nil {
		d.m.say(Output{Cancel: a.errand.ticket})
	}
	if len(a.errand.jobs) > a.errand.admitted+1 {
		d.want.admission = true
	}
	if d.want.better.none() {
		d.want.better, d.want.must = a.errand.reason, a.errand.must
	}
}

// abandon ends a trial whose job waits for no device any more, or of which a device has gone.
func (m *Machine) abandon() {
	for _, a := range m.trial.list {
		a.release()
	}
	m.trial, m.look = nil, true
}

// fits are the plans for the job of the trial; nil: it does not fit there now.
func (a *attempt) fits() *PlannedJob {
	if len(a.answer.Never) > 0 || a.at >= len(a.answer.Jobs) {
		return nil
	}
	return &a.answer.Jobs[a.at]
}

// best is the attempt by which the sum of weighted slowdowns grows least, of those with plans; nil: the job fits none
// of these now. The job's own slowdown counts against its speed alone on the fastest of all devices.
func (t *trial) best(fastest time.Duration) (best *attempt) {
	var least float64
	for _, a := range t.list { // by name
		if a.answer == nil || a.fits() == nil {
			continue
		}
		if grows := a.grows(fastest, t.weight); best == nil || grows < least {
			best, least = a, grows
		}
	}
	return best
}

// grows is by how much the sum of weighted slowdowns grows.
func (a *attempt) grows(fastest time.Duration, weight func(*job) float64) (sum float64) {
	for i, j := range a.errand.jobs[:a.errand.admitted] {
		sum += weight(j) * (a.answer.Jobs[i].Slowdown - cmp.Or(j.record.Slowdown, 1))
	}
	p := a.fits()
	return sum + weight(a.errand.jobs[a.at])*p.Slowdown*float64(p.Alone)/float64(fastest)
}

// nearest is the attempt that lacks least of the memory that the job needs, of those on which it might fit; nil: there
// is none.
func (t *trial) nearest() (found *attempt) {
	var least graph.Bytes
	for _, a := range t.list {
		if a.answer == nil { // one that was asked is alike
			continue
		}
		if _, never := a.answer.Never[a.at]; never {
			continue
		}
		lacks := graph.Bytes(math.MaxInt64)
		if w := a.answer.Why; w != nil && w.Need > 0 {
			lacks = w.Need - w.Budget
		}
		if found == nil || lacks < least {
			found, least = a, lacks
		}
	}
	return found
}

// nowhere refuses a job that can run on no device, not even alone, or has it fail if it was taken already; where a
// larger device may take it some day it waits for that one. Of the reasons that of the largest device is said, of equal
// ones the first by name.
func (m *Machine) nowhere(t *trial) {
	var on *attempt
	for _, a := range t.list {
		if a.answer != nil && (on == nil || a.domain.larger(on.domain)) { // one that was not asked is alike
			on = a
		}
	}
	text := on.answer.Never[on.at]
	if n := len(t.list); n > 1 {
		text = fmt.Sprintf("none of %d devices can run it; on the largest, %s: %s", n, on.domain.config.Name, text)
	}
	if t.job.batch != nil && m.largerAway(t.job, on.domain) == nil {
		m.refuse(t.job.batch, text)
	} else {
		m.unfit(t.job, on.domain, text)
	}
}

// larger reports whether a device has more memory than another.
func (d *domain) larger(o *domain) bool {
	return o.config.Budget > 0 && (d.config.Budget == 0 || d.config.Budget > o.config.Budget)
}

// largerAway is a device larger than d that may take a job some day: it is out of reach or drained; nil: there is none.
func (m *Machine) largerAway(j *job, d *domain) *domain {
	i := slices.IndexFunc(m.domains, func(o *domain) bool {
		pinned := j.record.Spec.Device != "" && j.record.Spec.Device != o.config.Name
		return o.larger(d) && o.brought != nil && (o.drained() || !o.alive()) && !pinned && !j.record.Spec.Script &&
			(!j.bound() || j.record.Device == o.config.Device)
	})
	if i < 0 {
		return nil
	}
	return m.domains[i]
}

// unfit has a job that can run on no device that may take it now, d being the largest, wait for a larger one that is
// out of reach or drained, or for a larger budget if it fitted once; else it fails. It reports whether it waits.
func (m *Machine) unfit(j *job, d *domain, text string) bool {
	why, away := "waits for a larger budget: ", m.largerAway(j, d)
	if away == nil {
		text += m.elsewhereFits(d)
	}
	switch {
	case away != nil && away.drained():
		why = fmt.Sprintf("waits for device %s, which is drained and larger: ", away.on())
	case away != nil:
		why = fmt.Sprintf("waits for device %s, which is out of reach and larger: ", away.on())
	case !j.fitted:
		m.over(j, wire.JobFailed, text, nil)
		return false
	}
	if j.batch != nil {
		m.take(j.batch)
	}
	j.record.Need, j.record.Reason = 0, why+text
	m.event(Event{Kind: Queued, Job: j.record.Spec.Name, Reason: j.record.Reason})
	return true
}
