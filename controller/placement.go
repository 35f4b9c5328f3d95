package controller

import (
	"fmt"
	"slices"

	"tensile/wire"
)

// A job that may train on one device alone belongs to its domain from when it comes. One that may train on several is
// tried: see trial. Where it fits nowhere now it waits at the device that lacks least, and is tried again when
// something has changed on any.

// free reports whether a job is at no executor, and may begin on any device.
func (j *job) free() bool { return j.record.State == wire.JobQueued && j.record.Executor == "" }

// candidates are the devices on which a job may begin now, of a replica those that have fewest of its siblings.
func (m *Machine) candidates(j *job) []*domain { return m.apart(j, m.allowed(j)) }

// allowed are the devices that may take a job: where it is known that some find its newest checkpoint, those alone.
func (m *Machine) allowed(j *job) []*domain {
	var list, finding []*domain
	c := j.record.Checkpoint
	found := false
	for _, d := range m.domains {
		pinned := j.record.Spec.Device != "" && j.record.Spec.Device != d.config.Name
		if pinned || !d.takes(j) {
			continue
		}
		list = append(list, d)
		x := m.executors[d.vacant(j, nil)]
		shares := c != nil && c.Folder != "" && x != nil && x.folder == c.Folder
		if found = found || shares; shares || d.brought == nil { // which may start an executor that finds it
			finding = append(finding, d)
		}
	}
	if found && !j.replica() {
		return finding
	}
	return list
}

// bound reports whether a job goes on with the bits alone with which it has begun: there is a checkpoint of it, or an
// executor was lost that may have written one of which nobody has heard.
func (j *job) bound() bool {
	r := &j.record
	lost := r.Spec.Checkpoint != wire.Interval{} && r.Incarnation > 0
	return (r.Checkpoint != nil || lost) && !r.Spec.AnyDevice && r.Device != ""
}

// takes reports whether a job may begin on a device: one of the bits with which it has begun, which executors have.
func (d *domain) takes(j *job) bool {
	r := &j.record
	switch {
	case j.bound() && r.Device != d.config.Device:
		return false
	case d.brought == nil && len(d.m.domains) == 1:
		return true
	case d.brought == nil && !slices.ContainsFunc(j.tried, d.has): // it may start an executor
		return j.lacking == 0 || d.vacant(j, nil) != ""
	case d.brought == nil:
		return d.vacant(j, nil) != ""
	case d.drained() || !d.alive() || r.Spec.Script:
		return false
	case simulated(d.config.Device) && (r.Spec.Weights != "" || r.Spec.Save != ""):
		return false // there is no data
	}
	return d.vacant(j, nil) != ""
}

// drained reports whether the device takes no jobs since somebody says so.
func (d *domain) drained() bool { return d.brought != nil && d.brought.Drained }

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
	if from := j.domain; from != nil {
		if from.brought != nil && from.brought.Drained && j.record.Checkpoint != nil && !j.full {
			m.event(Event{Kind: Moves, Job: j.record.Spec.Name, Device: d.config.Name,
				Why: fmt.Sprintf("device %s is drained", from.on())})
		}
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
	for _, j := range m.jobs {
		if j.free() && j.chosen && j.domain != nil && !m.underway(j) && !j.domain.takes(j) { // not any more
			j.chosen, m.look, m.changed = false, true, true
		}
	}
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
		case len(list) == 1 && len(m.allowed(j)) > 1: // the others have more of its siblings
			if !j.full && m.mayEnter(j) {
				m.bind(j, list[0])
				j.chosen, list[0].want.admission, m.changed = true, true, true // so that it counts for the next one
			}
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
	case r.Spec.Device != "" && d != nil && d.drained():
		why = fmt.Sprintf("waits for device %s, which is drained", r.Spec.Device)
	case r.Spec.Device != "":
		why = fmt.Sprintf("waits for device %s", r.Spec.Device)
	case len(m.domains) > 0 && simulated(m.domains[0].config.Device) && (r.Spec.Weights != "" || r.Spec.Save != ""):
		why = "waits for a device that has data, for --weights or --save: all that are here are simulated"
	case j.bound() && slices.ContainsFunc(m.domains, func(d *domain) bool {
		return d.drained() && d.config.Device == r.Device
	}):
		why = "waits for a device that is not drained"
	case j.bound():
		why = fmt.Sprintf("waits for a device %s, with which it has begun", r.Device)
	case slices.ContainsFunc(m.domains, (*domain).drained):
		why = "waits for a device that is not drained"
	}
	if r.Reason != why {
		r.Reason, r.Need, m.changed = why, 0, true
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
	if m.trial != nil {
		m.proceed()
	}
	if m.trial != nil || !m.look {
		return
	}
	m.look = false
	roaming := slices.DeleteFunc(slices.Clone(m.jobs), func(j *job) bool {
		return j.hurt != "" || !(m.returns(j) && j.free()) && (j.ready > m.now || !m.roams(j))
	})
	m.inOrder(roaming)
	blocked := make(map[*domain]*job)
	for _, j := range roaming {
		list := slices.DeleteFunc(m.candidates(j), func(d *domain) bool { _, held := d.holds(j); return held })
		if len(list) == 0 || !j.full && !m.returns(j) && !m.mayEnter(j) {
			continue
		}
		if j.full || m.returns(j) {
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
	if j.record.Reason != why {
		j.record.Reason, j.record.Need, m.changed = why, 0, true
		m.event(Event{Kind: Queued, Job: j.record.Spec.Name, Reason: why})
	}
}

// unsettled reports whether the device of one of the jobs is not known yet.
func (b *batch) unsettled() bool {
	return slices.ContainsFunc(b.jobs, func(j *job) bool {
		return j.record.State == wire.JobQueued && j.domain == nil && !j.full
	})
}

// elsewhereFits is what to say of a job that is refused on the one device that it asks for, if others have more memory.
func (m *Machine) elsewhereFits(d *domain) string {
	var most *domain
	for _, o := range m.domains {
		if o.larger(d) && (most == nil || o.larger(most)) {
			most = o
		}
	}
	if most == nil {
		return ""
	}
	return fmt.Sprintf("; device %s has %s", most.config.Name, words(most.config.Budget))
}
