package controller

import (
	"cmp"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"

	"tensile/graph"
	"tensile/predictor/correct"
	"tensile/wire"
)

// A job that may train on one device alone belongs to its domain from when it comes. One that may train on several is
// tried on each: plans are made for the jobs that are there, those that wait there and the job, on all devices at the
// same time. It goes where the sum over jobs of weight x slowdown grows least, with the plan that was made; equal sums
// are decided by name. Where it fits nowhere now it waits at the device that lacks least, and is tried again when
// something has changed on any.

// trial is a job that is planned for on several devices.
type trial struct {
	job  *job
	list []*attempt
}

// attempt is a trial on one device.
type attempt struct {
	domain *domain
	errand *errand
	at     int      // of the job in the errand
	answer *Planned // nil: it has not come yet
}

// free reports whether a job is at no executor, and may begin on any device.
func (j *job) free() bool { return j.record.State == wire.Queued && j.record.Executor == "" }

// candidates are the devices on which a job may begin now.
func (m *Machine) candidates(j *job) []*domain {
	var list []*domain
	for _, d := range m.domains {
		pinned := j.record.Spec.Device != "" && j.record.Spec.Device != d.config.Name
		if !pinned && d.takes(j) {
			list = append(list, d)
		}
	}
	return list
}

// takes reports whether a job may begin on a device: one of the bits with which it has begun, which executors have.
func (d *domain) takes(j *job) bool {
	r := &j.record
	begun := r.Checkpoint != nil && !r.Spec.AnyDevice && r.Device != ""
	switch {
	case d.brought == nil && len(d.m.domains) == 1:
		return true
	case d.brought == nil && begun && r.Device != d.config.Device:
		return false
	case d.brought == nil && !slices.ContainsFunc(j.tried, d.has): // it may start an executor
		return j.lacking == 0 || d.vacant(j, nil) != ""
	case d.brought == nil:
		return d.vacant(j, nil) != ""
	case d.brought.Drained || !d.alive() || r.Spec.Script || begun && r.Device != d.config.Device:
		return false
	case strings.HasPrefix(d.config.Device, "sim:") && (r.Spec.Weights != "" || r.Spec.Save != ""):
		return false // there is no data
	}
	return d.vacant(j, nil) != ""
}

// has reports whether an executor of a name has the device open.
func (d *domain) has(executor string) bool {
	x := d.m.executors[executor]
	return x != nil && x.domain == d
}

// roams reports whether a job that waits is tried on several devices.
func (m *Machine) roams(j *job) bool {
	return len(m.domains) > 1 && j.free() && !j.chosen && len(m.candidates(j)) > 1
}

// bind has a job belong to the domain of a device, with nothing known of it there.
func (m *Machine) bind(j *job, d *domain) {
	if j.domain == d {
		return
	}
	if j.domain != nil {
		m.unplace(j)
	}
	j.domain, j.page, j.record.On, j.record.Budget, j.fresh = d, d.config.Page, d.on(), d.config.Budget, true
}

// unplace has a job belong to no device.
func (m *Machine) unplace(j *job) {
	j.domain, j.record.On, j.page, j.chosen = nil, "", 0, false
	if !j.record.Spec.Script {
		j.profile, j.latency, j.spare, j.lessons, j.learnt, j.assumed = nil, nil, nil, nil, false, nil
	}
	j.stuck, j.wants, j.record.Need, j.record.Slowdown = false, 0, 0, 0
}

// assign has jobs that wait belong to the one device that may take them, where there is just one.
func (m *Machine) assign() {
	if !m.look {
		return
	}
	for _, j := range slices.Clone(m.jobs) {
		if !j.free() || j.chosen || m.underway(j) || j.ready > m.now {
			continue
		}
		switch list := m.candidates(j); {
		case len(list) == 0 && j.lacking == 0:
			m.strand(j)
		case len(list) == 1 && j.domain != list[0]:
			m.bind(j, list[0])
			list[0].want.admission, m.changed = true, true
		}
	}
}

// underway reports whether plans with a job that waits are being made.
func (m *Machine) underway(j *job) bool {
	return m.trial != nil && m.trial.job == j ||
		j.domain != nil && j.domain.errand != nil && slices.Contains(j.domain.errand.jobs, j)
}

// strand says what device a job waits for that none takes.
func (m *Machine) strand(j *job) {
	if j.batch != nil {
		m.take(j.batch)
	}
	why := "waits for an executor that brings a device"
	r := &j.record
	switch d := m.device(r.Spec.Device); {
	case r.Spec.Device != "" && d != nil && d.brought != nil && d.brought.Drained:
		why = fmt.Sprintf("waits for device %s, which is drained", r.Spec.Device)
	case r.Spec.Device != "":
		why = fmt.Sprintf("waits for device %s", r.Spec.Device)
	case r.Checkpoint != nil && !r.Spec.AnyDevice && r.Device != "":
		why = fmt.Sprintf("waits for a device %s, with which it has begun", r.Device)
	case slices.ContainsFunc(m.domains, func(d *domain) bool { return d.brought != nil && d.brought.Drained }):
		why = "waits for a device that is not drained"
	}
	if r.Why != why {
		r.Why, r.Need, m.changed = why, 0, true
		m.event(Event{Kind: Queued, Job: r.Spec.Name, Reason: why})
	}
}

// try has the first job of the queue that several devices may take planned for on these. A job behind one that fits
// nowhere is tried on the devices that the other may not have.
func (m *Machine) try() {
	for _, d := range m.domains {
		d.sought = false
	}
	if m.trial != nil && !m.trial.job.free() {
		m.abandon()
	}
	if m.trial != nil || !m.look {
		return
	}
	m.look = false
	roaming := slices.DeleteFunc(slices.Clone(m.jobs), func(j *job) bool { return j.ready > m.now || !m.roams(j) })
	m.inOrder(roaming)
	blocked := make(map[*domain]*job)
	for _, j := range roaming {
		list := slices.DeleteFunc(m.candidates(j), func(d *domain) bool { _, held := d.holds(j); return held })
		if len(list) == 0 {
			continue
		}
		if j.full {
			for _, d := range list {
				blocked[d] = j
			}
			continue
		}
		before := blocked[list[0]]
		list = slices.DeleteFunc(list, func(d *domain) bool { return blocked[d] != nil })
		if len(list) == 0 {
			m.behind(j, before)
			continue
		}
		busy := false
		for _, d := range list {
			d.sought = true
			d.cancel()
			busy = busy || d.errand != nil
		}
		if m.look = true; !busy {
			m.beginTrial(j, list)
		}
		return
	}
}

// behind has a job wait for another that may take all of its devices.
func (m *Machine) behind(j, before *job) {
	if j.batch != nil {
		m.take(j.batch)
	}
	why := fmt.Sprintf("job %s is before it in the queue", before.record.Spec.Name)
	if j.record.Why != why {
		j.record.Why, j.record.Need, m.changed = why, 0, true
		m.event(Event{Kind: Queued, Job: j.record.Spec.Name, Reason: why})
	}
}

// beginTrial has plans with a job made on several devices.
func (m *Machine) beginTrial(j *job, list []*domain) {
	m.trial = &trial{job: j}
	for _, d := range list {
		if slices.ContainsFunc(m.trial.list, func(a *attempt) bool { return d.alike(a.domain) }) {
			continue
		}
		others := slices.DeleteFunc(d.waiting(), func(o *job) bool { return o == j || m.roams(o) })
		with := append(others, j)
		m.inOrder(with)
		e := d.send(with)
		m.trial.list = append(m.trial.list, &attempt{domain: d, errand: e, at: slices.Index(e.jobs, j)})
	}
}

// alike reports whether plans on a device are those on another: both are of one kind, and nobody has anything of them.
func (d *domain) alike(o *domain) bool {
	a, b := d.config, o.config
	a.Name, a.Lease, b.Name, b.Lease = "", "", "", ""
	idle := func(d *domain) bool {
		return len(d.active()) == 0 && len(d.waiting()) == 0 && d.reserved() == 0 && d.learnt.count == 0 &&
			reflect.DeepEqual(d.line, correct.Line{})
	}
	return (d.brought == nil) == (o.brought == nil) && reflect.DeepEqual(a, b) && idle(d) && idle(o) &&
		d.staying() == o.staying()
}

// tried takes the plans of a trial on a device, and decides when those on all have come.
func (m *Machine) tried(d *domain, p *Planned) {
	t := m.trial
	for _, a := range t.list {
		if a.domain == d {
			a.answer = p
		}
	}
	if slices.ContainsFunc(t.list, func(a *attempt) bool { return a.answer == nil }) {
		return
	}
	m.changed, m.look = true, true
	if !t.job.free() {
		m.abandon()
		return
	}
	m.trial = nil
	if best := t.best(); best != nil {
		m.choose(t, best)
		return
	}
	t.job.full = true
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
	j.chosen = !j.full
	if b := j.batch; b != nil && b.unsettled() {
		on.release()
		return
	} else if b != nil {
		for _, o := range b.jobs {
			o.domain.want.admission = true
		}
	}
	on.domain.planned(on.answer)
}

// release gives up the plans of an attempt.
func (a *attempt) release() {
	d := a.domain
	if d.errand != a.errand {
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

// best is the attempt by which the sum of weighted slowdowns grows least; nil: the job fits nowhere now. The job's own
// counts against its speed alone on the fastest of these devices.
func (t *trial) best() *attempt {
	fastest := time.Duration(math.MaxInt64)
	for _, a := range t.list {
		if p := a.fits(); p != nil && p.Alone > 0 {
			fastest = min(fastest, p.Alone)
		}
	}
	var best *attempt
	var least float64
	for _, a := range t.list { // by name
		if a.fits() == nil {
			continue
		}
		if grows := a.grows(fastest); best == nil || grows < least {
			best, least = a, grows
		}
	}
	return best
}

// grows is by how much the sum of weighted slowdowns grows.
func (a *attempt) grows(fastest time.Duration) (sum float64) {
	for i, j := range a.errand.jobs[:a.errand.admitted] {
		sum += float64(j.priority()) * (a.answer.Jobs[i].Slowdown - cmp.Or(j.record.Slowdown, 1))
	}
	p := a.fits()
	return sum + float64(a.errand.jobs[a.at].priority())*p.Slowdown*float64(p.Alone)/float64(fastest)
}

// nearest is the attempt that lacks least of the memory that the job needs, of those on which it might fit; nil: there
// is none.
func (t *trial) nearest() (found *attempt) {
	var least graph.Bytes
	for _, a := range t.list {
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

// nowhere refuses a job that can run on no device, not even alone, or has it fail if it was taken already.
func (m *Machine) nowhere(t *trial) {
	j := t.job
	var why []string
	for _, a := range t.list {
		why = append(why, fmt.Sprintf("on device %s: %s", a.domain.config.Name, a.answer.Never[a.at]))
	}
	text := strings.Join(why, "; ")
	switch {
	case j.batch != nil:
		m.refuse(j.batch, text)
	case j.fitted:
		j.record.Need, j.record.Why = 0, "waits for a larger budget: "+text
		m.event(Event{Kind: Queued, Job: j.record.Spec.Name, Reason: j.record.Why})
	default:
		m.over(j, wire.Broken, text, nil)
	}
}

// unsettled reports whether the device of one of the jobs is not known yet.
func (b *batch) unsettled() bool {
	return slices.ContainsFunc(b.jobs, func(j *job) bool { return j.record.State == wire.Queued && j.domain == nil })
}

// elsewhereFits is what to say of a job that is refused on the one device that it asks for, if others have more memory.
func (m *Machine) elsewhereFits(d *domain) string {
	var most *domain
	for _, o := range m.domains {
		larger := o.config.Budget == 0 || most != nil && most.config.Budget > 0 && o.config.Budget > most.config.Budget
		if o != d && d.config.Budget > 0 && (larger || most == nil && o.config.Budget > d.config.Budget) {
			most = o
		}
	}
	if most == nil {
		return ""
	}
	return fmt.Sprintf("; device %s has %s", most.config.Name, words(most.config.Budget))
}
