package controller

import (
	"fmt"
	"slices"

	"tensile/wire"
)

// A job that may train on one device alone belongs to its domain as soon as it comes. For a job that may train on
// several a device is searched: see placementSearch. Where it fits none now, it waits at the device that lacks the
// least memory, and the search is repeated when something has changed on any device.

// isFree reports whether a job is at no executor, and may begin on any device.
func (j *job) isFree() bool { return j.record.State == wire.JobQueued && j.record.Executor == "" }

// candidateDevices are the devices on which a job may begin now. For a replica they are those that have fewest of its
// peers.
func (m *Machine) candidateDevices(j *job) []*domain { return m.spreadReplica(j, m.allowedDevices(j)) }

// allowedDevices are the devices that may take a job. If it is known that some find the job's newest checkpoint, they
// are these alone.
func (m *Machine) allowedDevices(j *job) []*domain {
	var list, finding []*domain
	c := j.record.Checkpoint
	found := false
	for _, d := range m.domains {
		pinned := j.record.Spec.Device != "" && j.record.Spec.Device != d.config.Name
		if pinned || !d.mayTake(j) {
			continue
		}
		list = append(list, d)
		x := m.executors[d.vacantExecutor(j, nil)]
		shares := c != nil && c.Folder != "" && x != nil && x.Folder == c.Folder
		// The controller may start an executor that finds it.
		if found = found || shares; shares || d.registered == nil {
			finding = append(finding, d)
		}
	}
	if found && !j.isReplica() {
		return finding
	}
	return list
}

// boundToBits reports whether a job must go on with the bits with which it has begun: there is a checkpoint of it, or
// an executor was lost that may have written one of which nobody has heard.
func (j *job) boundToBits() bool {
	r := &j.record
	lost := r.Spec.Checkpoint != wire.Interval{} && r.Incarnation > 0
	return (r.Checkpoint != nil || lost) && !r.Spec.AnyDevice && r.Device != ""
}

// mayTake reports whether a job may begin on the device: it has the bits with which the job has begun, and an executor.
func (d *domain) mayTake(j *job) bool {
	r := &j.record
	switch {
	case j.boundToBits() && r.Device != d.config.Device:
		return false
	case d.registered == nil && len(d.m.domains) == 1:
		return true
	case d.registered == nil && !slices.ContainsFunc(j.failedAt, d.hasExecutor): // the controller may start an executor
		return j.checkpointDeadline == 0 || d.vacantExecutor(j, nil) != ""
	case d.registered == nil:
		return d.vacantExecutor(j, nil) != ""
	case d.isDrained() || !d.canStartJobs() || r.Spec.Script:
		return false
	case isSimulated(d.config.Device) && (r.Spec.Weights != "" || r.Spec.Save != ""):
		return false // a simulated device has no data
	}
	return d.vacantExecutor(j, nil) != ""
}

// isDrained reports whether an administrator has drained the device: it takes no jobs.
func (d *domain) isDrained() bool { return d.registered != nil && d.registered.Drained }

// hasExecutor reports whether an executor of a name has the device open.
func (d *domain) hasExecutor(executor string) bool {
	x := d.m.executors[executor]
	return x != nil && x.Device == d.recordName()
}

// needsSearch reports whether a queued job is to be tried on several devices.
func (m *Machine) needsSearch(j *job) bool {
	return len(m.domains) > 1 && j.isFree() && !j.deviceChosen && len(m.candidateDevices(j)) > 1
}

// bindDevice has a job belong to the domain of a device, with nothing known of it there.
func (m *Machine) bindDevice(j *job, d *domain) {
	if j.domain == d {
		return
	}
	if from := j.domain; from != nil {
		if from.registered != nil && from.registered.Drained && j.record.Checkpoint != nil && !j.found.noRoom {
			m.tell(j, Event{Kind: Migrating, Device: d.config.Name,
				Detail: fmt.Sprintf("device %s is drained", from.recordName())})
		}
		m.unbindDevice(j)
	}
	j.domain, j.leasePage, j.record.On, j.record.Budget, j.unchecked = d, d.config.Page, d.recordName(),
		d.config.Budget, true
}

// unbindDevice has a job belong to no device.
func (m *Machine) unbindDevice(j *job) {
	j.domain, j.record.On, j.leasePage, j.deviceChosen = nil, "", 0, false
	if !j.record.Spec.Script {
		j.jobLatencies = jobLatencies{}
	}
	j.unchecked, j.record.Slowdown = true, 0
}

// assignDevices has queued jobs belong to the device that may take them, where there is just one.
func (m *Machine) assignDevices() {
	for _, j := range m.jobs {
		// The device may not take it any more.
		if j.isFree() && j.deviceChosen && j.domain != nil && !m.isBeingPlanned(j) && !j.domain.mayTake(j) {
			j.deviceChosen, m.needsPlacement, m.changed = false, true, true
		}
	}
	if !m.needsPlacement {
		return
	}
	for _, j := range slices.Clone(m.jobs) {
		if !j.isFree() || j.deviceChosen || m.isBeingPlanned(j) || m.isPausing(j) {
			continue
		}
		switch list := m.candidateDevices(j); {
		case len(list) == 0 && j.checkpointDeadline == 0:
			m.explainNoDevice(j)
		case len(list) == 1 && len(m.allowedDevices(j)) > 1: // the other devices have more of its peers
			if !j.found.noRoom && m.mayBePlanned(j) {
				m.bindDevice(j, list[0])
				// The next replica counts it there.
				j.deviceChosen, list[0].pending.admission, m.changed = true, true, true
			}
		case len(list) == 1 && j.domain != list[0]:
			m.bindDevice(j, list[0])
			list[0].pending.admission, m.changed = true, true
		}
	}
}

// isBeingPlanned reports whether plans with a queued job are being made.
func (m *Machine) isBeingPlanned(j *job) bool {
	return m.search != nil && m.search.job == j ||
		j.domain != nil && j.domain.request != nil && slices.Contains(j.domain.request.jobs, j)
}

// explainNoDevice records what device a job waits for that no present device may take.
func (m *Machine) explainNoDevice(j *job) {
	if j.batch != nil {
		m.takeBatch(j.batch)
	}
	why := "waits for an executor that brings a device"
	r := &j.record
	switch d := m.domainByName(r.Spec.Device); {
	case r.Spec.Device != "" && d != nil && d.isDrained():
		why = fmt.Sprintf("waits for device %s, which is drained", r.Spec.Device)
	case r.Spec.Device != "":
		why = fmt.Sprintf("waits for device %s", r.Spec.Device)
	case len(m.domains) > 0 && isSimulated(m.domains[0].config.Device) && (r.Spec.Weights != "" || r.Spec.Save != ""):
		why = "waits for a device that has data, for --weights or --save: all that are here are simulated"
	case j.boundToBits() && slices.ContainsFunc(m.domains, func(d *domain) bool {
		return d.isDrained() && d.config.Device == r.Device
	}):
		why = "waits for a device that is not drained"
	case j.boundToBits():
		why = fmt.Sprintf("waits for a device %s, with which it has begun", r.Device)
	case slices.ContainsFunc(m.domains, (*domain).isDrained):
		why = "waits for a device that is not drained"
	}
	m.announceWait(j, wire.Wait{For: wire.WaitDevice}, why)
}

// startSearch searches a device for the first job of the queue that several devices may take. A job behind one that
// fits nowhere is tried on the devices that the other may not have.
func (m *Machine) startSearch() {
	for _, d := range m.domains {
		d.inSearch = false
	}
	if m.search != nil && !m.search.job.isFree() {
		m.abandonSearch()
	}
	if m.search != nil {
		m.advanceSearch()
	}
	if m.search != nil || !m.needsPlacement {
		return
	}
	m.needsPlacement = false
	roaming := slices.DeleteFunc(slices.Clone(m.jobs), func(j *job) bool {
		return j.damage != "" || !(m.isRestarting(j) && j.isFree()) && (m.isPausing(j) || !m.needsSearch(j))
	})
	m.sortQueue(roaming)
	blocked := make(map[*domain]*job)
	for _, j := range roaming {
		list := slices.DeleteFunc(m.candidateDevices(j), func(d *domain) bool {
			_, held := d.throttles(j)
			return held
		})
		if len(list) == 0 || !j.found.noRoom && !m.isRestarting(j) && !m.mayBePlanned(j) {
			continue
		}
		if j.found.noRoom || m.isRestarting(j) {
			for _, d := range list {
				blocked[d] = j
			}
			continue
		}
		before := blocked[list[0]]
		list = slices.DeleteFunc(list, func(d *domain) bool { return blocked[d] != nil })
		if len(list) == 0 {
			m.waitBehind(j, before)
			continue
		}
		busy := false
		for _, d := range list {
			d.inSearch = true
			d.cancelRequest()
			busy = busy || d.request != nil
		}
		if m.needsPlacement = true; !busy {
			m.beginSearch(j, list)
		}
		return
	}
}

// waitBehind has a job wait for another that may take all of its devices.
func (m *Machine) waitBehind(j, before *job) {
	if j.batch != nil {
		m.takeBatch(j.batch)
	}
	m.announceWait(j, wire.Wait{For: wire.WaitTurn},
		fmt.Sprintf("job %s is before it in the queue", before.record.Spec.Name))
}

// hasUnplaced reports whether the device of one of the jobs is not chosen yet.
func (b *batch) hasUnplaced() bool {
	return slices.ContainsFunc(b.jobs, func(j *job) bool {
		return j.record.State == wire.JobQueued && j.domain == nil && !j.found.noRoom
	})
}

// largerDeviceHint ends the refusal of a job on the one device that it asks for with the device that has more memory.
// "": none has.
func (m *Machine) largerDeviceHint(d *domain) string {
	var most *domain
	for _, o := range m.domains {
		if o.hasMoreMemory(d) && (most == nil || o.hasMoreMemory(most)) {
			most = o
		}
	}
	if most == nil {
		return ""
	}
	return fmt.Sprintf("; device %s has %s", most.config.Name, budgetText(most.config.Budget))
}
