package controller

import (
	"fmt"
	"slices"

	"tensile/controller/plans"
	"tensile/wire"
)

// How the replicas of a gang are placed and start together: parts (a) and (b) of replicas.go.

// spreadReplica keeps, of the devices that may take a replica, those that have fewest of its peers; or all, if the
// replica has found no room on these.
func (m *Machine) spreadReplica(j *job, list []*domain) []*domain {
	if !j.isReplica() || j.found.packed || j.isBlocked() || len(list) < 2 {
		return list
	}
	count := make(map[*domain]int)
	for _, o := range m.gang(j) {
		if o != j && (o.deviceChosen || o.isActive() || o.hasExecutor()) {
			count[o.domain]++
		}
	}
	fewest := count[list[0]]
	for _, d := range list {
		fewest = min(fewest, count[d])
	}
	return slices.DeleteFunc(list, func(d *domain) bool { return count[d] > fewest })
}

// allowPacking has a replica that fits none of the devices with fewest peers tried on those with more of them. It
// reports whether there are any.
func (m *Machine) allowPacking(j *job) bool {
	if !j.isReplica() || j.found.packed || !j.isFree() {
		return false
	}
	few := len(m.candidateDevices(j))
	if j.found.packed = true; len(m.candidateDevices(j)) == few {
		return false
	}
	j.deviceChosen, m.needsPlacement = false, true
	return true
}

// startingGang is the gang that is about to start. One of its replicas is admitted and has nothing yet, or its device
// was chosen. nil: no gang is about to start.
func (m *Machine) startingGang() []*job {
	for _, j := range m.jobs {
		if j.isReplica() && (j.record.State == wire.JobStarting && j.claim().IsZero() ||
			j.record.State == wire.JobQueued && j.deviceChosen) {
			return m.gang(j)
		}
	}
	return nil
}

// mayBePlanned reports whether a queued job may be planned for now. A replica may only if no other gang is about to
// start, and if nothing but memory keeps its peers from beginning.
func (m *Machine) mayBePlanned(j *job) bool {
	g := m.gang(j)
	if g == nil {
		return true
	}
	if in := m.startingGang(); in != nil && in[0] != g[0] {
		return false
	}
	for _, o := range g {
		switch o.record.State {
		case wire.JobStarting:
		case wire.JobQueued:
			elsewhere := func(d *domain) bool { return o.isFree() && d != o.domain } // another device may take it
			held := o.isBlocked() && !slices.ContainsFunc(m.candidateDevices(o), elsewhere)
			if held || o.found.noRoom || m.isPausing(o) || m.isUnreachable(o) || o.checkpointDeadline > 0 &&
				!m.otherExecutorMayTake(o) {
				return false
			}
		default:
			return false
		}
	}
	return true
}

// hasUnplacedPeer reports whether a device is still to be searched for peers of a job.
func (m *Machine) hasUnplacedPeer(j *job) bool {
	return slices.ContainsFunc(m.gang(j), func(o *job) bool {
		return o != j && o.record.State == wire.JobQueued && !o.found.noRoom && (o.domain == nil || m.needsSearch(o))
	})
}

// dropPartialGangs divides jobs that are about to begin on the device. A replica is cut if a peer on this device does
// not begin with it.
func (d *domain) dropPartialGangs(begun []*job) (whole, cut []*job) {
	for _, j := range begun {
		alone := func(o *job) bool {
			if o.domain != d || o.record.State != wire.JobQueued || slices.Contains(begun, o) {
				return false
			}
			may := d.m.candidateDevices(o) // the replica was here before, and may have to go elsewhere
			return o.deviceChosen || len(may) == 1 && may[0] == d
		}
		if slices.ContainsFunc(d.m.gang(j), alone) || !d.m.mayBePlanned(j) {
			cut = append(cut, j)
		} else {
			whole = append(whole, j)
		}
	}
	return whole, cut
}

// gangNeverFits returns a replica, and why its gang cannot start on the one device that may take it, even when the gang
// is alone, but for what executors out of reach may have. why "": it may start.
func (d *domain) gangNeverFits(e *openRequest, p *plans.Result) (j *job, why string) {
	if e.admitted > 0 || len(e.jobs) == 0 || p.NoPlan == nil || p.NoPlan.Need == 0 || !d.memoryUnchanged(e) {
		return nil, ""
	}
	j = e.jobs[0]
	if j.record.Spec.Replica.Of <= len(p.Jobs) || slices.ContainsFunc(d.m.gang(j), d.mayStartElsewhere) {
		return nil, ""
	}
	of, on, beside := "", "", ", even alone"
	if d.reservedBytes() > 0 {
		beside = " beside what some may have that cannot be reached"
	}
	if p.NoPlan.OnHost {
		of = " of host memory"
	}
	if len(d.m.domains) > 1 {
		on = " of device " + d.config.Name
	}
	return j, fmt.Sprintf("job %s cannot run here%s: %d of its %d replicas need %s%s and the budget%s is "+
		"%s%s; try fewer --replicas, or a smaller --batch or --image", gangName(&j.record.Spec), beside, len(p.Jobs)+1,
		j.record.Spec.Replica.Of, p.NoPlan.Need, of, on, p.NoPlan.Budget, p.NoPlan.Contexts.Suffix())
}

// mayStartElsewhere reports whether a job may begin on another device than this one.
func (d *domain) mayStartElsewhere(j *job) bool {
	if len(d.m.domains) == 1 || j.domain == d && !j.isFree() {
		return false
	}
	may := d.m.candidateDevices(j)
	return j.domain != d || len(may) != 1 || may[0] != d
}

// blockReplicas marks the replicas of a job's gang as blocked: they wait for a larger budget, or for executors out of
// reach, and others may begin before them.
func (d *domain) blockReplicas(j *job, why string) {
	waits := "waits for a larger budget: "
	if d.reservedBytes() > 0 {
		waits = "waits for executors: "
	}
	for _, o := range d.m.gang(j) {
		o.unchecked = false
		o.waitFor(wire.Wait{For: wire.WaitBudget}, waits+why)
	}
	d.m.tell(j, Event{Kind: Queued, Reason: j.record.Reason})
	d.pending.admission, d.m.changed = true, true
}

// isPlanPending reports whether plans with a queued job are being made, or are to be made.
func (m *Machine) isPlanPending(j *job) bool {
	d := j.domain
	switch {
	case m.isBeingPlanned(j):
		return true
	case m.needsSearch(j):
		return m.needsPlacement && !j.found.noRoom
	}
	return d != nil && d.pending.admission && slices.Contains(d.waitingJobs(), j)
}

// requeueIncompleteGang has the gang that is about to start wait again if one of its replicas has found no room.
func (m *Machine) requeueIncompleteGang() {
	g := m.startingGang()
	admitted := slices.ContainsFunc(g, func(j *job) bool { return j.record.State == wire.JobStarting })
	at := slices.IndexFunc(g, func(j *job) bool {
		return j.record.State == wire.JobQueued && !m.isPlanPending(j) && (admitted || !j.deviceChosen)
	})
	if at < 0 {
		return
	}
	m.requeueGang(g, g[at].record.Spec.Name, g[at].record.Reason)
}

// requeueGang has the replicas of a gang that has nothing yet wait again. first is the name of the one for which they
// do, and why the reason.
func (m *Machine) requeueGang(g []*job, first, why string) {
	m.changed, m.needsPlacement = true, true
	for _, j := range g {
		if j.record.State == wire.JobStarting {
			waits := why
			w := wire.Wait{For: wire.WaitExecutor}
			if j.record.Spec.Name != first {
				w, waits = wire.Wait{For: wire.WaitReplicas}, fmt.Sprintf("waits with replica %s, which %s", first, why)
			}
			j.domain.requeueAdmitted(j, w, waits)
			if !m.config.NoReplan && j.domain.pending.replan.isZero() {
				j.domain.pending.replan = newReason(Departure, "job %s waits again", j.record.Spec.Name)
			}
		}
		j.deviceChosen, j.found.noRoom = false, len(m.domains) > 1
	}
	for _, d := range m.domains {
		d.pending.admission = true // other gangs were kept from starting
	}
}

// startGang grants the replicas of the gang that is about to start their first layouts, if all can be granted at once.
func (m *Machine) startGang() {
	g := m.startingGang()
	if g == nil {
		return
	}
	for i, j := range g {
		l := j.newestLayout()
		if j.record.State != wire.JobStarting || l == nil || l.granted || !j.domain.hasRoom(j, l) {
			for _, o := range g[:i] {
				o.newestLayout().granted = false
			}
			return
		}
		if d := j.domain; j.record.Executor == "" && d.registered != nil && (d.registered.Drained ||
			d.vacantExecutor(j, nil) == "") {
			for _, o := range g[:i] {
				o.newestLayout().granted = false
			}
			why := fmt.Sprintf("no executor of device %s takes it", d.recordName())
			m.requeueGang(g, j.record.Spec.Name, why)
			for _, o := range g {
				o.found.noRoom = false // another device may take it
			}
			j.waitFor(wire.Wait{For: wire.WaitExecutor}, why)
			return
		}
		l.granted = true // so that room for the next ones is counted beside this one
	}
	for _, j := range g {
		l := j.newestLayout()
		j.record.Granted, j.record.Park, j.record.At = l.Epoch(), "", 0
		j.replica.resting, j.replica.margin, j.replica.iterationsBegun, j.replica.running = false, 0, 0, true
		m.tell(j, Event{Kind: Granted, Epoch: l.Epoch(), Amounts: Amounts{Bytes: l.Wire.Arena}})
	}
	g[0].replica.checkpointOrdered = m.now
	for _, d := range m.domains { // other gangs may start now
		m.retryAdmission(d)
	}
}
