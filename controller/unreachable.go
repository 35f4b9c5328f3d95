package controller

import (
	"fmt"
	"slices"

	"tensile/controller/fleet"
	"tensile/controller/recovery"
	"tensile/graph"
	"tensile/wire"
)

// An executor whose process has ended for certain is dead: its parent, the lock that it held, or the executor itself
// says so. One that is only silent may be training. Its memory stays reserved, and its jobs are unknown, until it is
// heard of again or given up. When it is given up its jobs go on elsewhere in another incarnation, and its memory stays
// reserved until it is known to be gone.

// reachableJobs are the active jobs that can change to new plans: their executors can be reached, and nothing of them
// is damaged.
func (d *domain) reachableJobs() []*job {
	return slices.DeleteFunc(d.activeJobs(), func(j *job) bool {
		return j.record.State == wire.JobUnknown ||
			j.damage != ""
	})
}

// reservedBytes is the part of the budget that executors out of reach may have, with their contexts.
func (d *domain) reservedBytes() (sum graph.Bytes) {
	for j := range d.jobs() {
		if j.record.State == wire.JobUnknown || j.damage != "" && j.isActive() {
			sum += j.claim().Arena
		}
	}
	held, _ := d.reservations()
	return sum + held + d.unreachableContexts().Sum()
}

// removeExecutor removes an executor whose process has ended. The memory of its jobs is free, and they go on from their
// checkpoints.
func (m *Machine) removeExecutor(x *fleet.Executor, as fleet.State, why string) {
	x.Enter(as)
	m.changed = true
	m.unblock()
	m.emitEvent(Event{Kind: ExecutorEnded, Executor: x.Name, Detail: why})
	for _, j := range m.jobs {
		if j.record.Executor == x.Name && j.hasExecutor() {
			m.lose(j, recovery.Lost, why)
		}
	}
	m.releaseReservations(x.Name, func(life string) bool { return life == x.Life }, why)
	m.departed = append(m.departed, x.Name)
}

// processEnded takes the news that a process with the name of an executor has ended.
func (m *Machine) processEnded(name, life, why string) {
	if x := m.executors[name]; x != nil && !x.IsGone() && x.Life == life {
		m.removeExecutor(x, fleet.Dead, why)
	}
	m.releaseReservations(name, func(l string) bool { return l == life }, why)
}

// releaseReservations gives back what some processes of an executor's name may have had, and reports whether there was
// anything.
func (m *Machine) releaseReservations(name string, ended func(life string) bool, why string) bool {
	var of *domain
	for _, j := range m.jobs {
		j.release(func(h wire.Holding) bool {
			if h.Executor != name || !ended(h.Life) {
				return false
			}
			of = m.domainByRecord(h.On)
			return true
		})
	}
	if of != nil {
		m.announceFreed(of, name, why)
	}
	return of != nil
}

// announceFreed has plans made, and jobs looked at, because memory of a device is free that an executor may have had.
func (m *Machine) announceFreed(d *domain, name, why string) {
	m.changed = true
	m.retryAdmission(d)
	m.unblock()
	m.emitEvent(Event{Kind: MemoryFreed, Executor: name, Detail: why})
	if !m.config.NoReplan {
		d.pending.replan = newReason(Processes, "executor %s has given its memory back", name)
	}
}

// release gives back what earlier incarnations of the job may have, where that is free, and reports whether there was
// anything.
func (j *job) release(free func(wire.Holding) bool) bool {
	n := len(j.record.Held)
	// The slice is shared with stored records: it is not changed in place.
	j.record.Held = slices.DeleteFunc(slices.Clone(j.record.Held), free)
	return len(j.record.Held) < n
}

// settleReservations gives back what an executor has no more, as it says itself (fleet.Executor.Keeps).
func (m *Machine) settleReservations(x *fleet.Executor, s *wire.Status) {
	if s.Orders < x.Orders.Number {
		return
	}
	any, why := false, "it is back"
	for _, j := range m.jobs {
		if j.release(func(h wire.Holding) bool { return !x.Keeps(h, j.record.Spec.Name, s) }) {
			if any = true; j.isReplica() {
				why = "its replicas have left it"
			}
		}
	}
	if any {
		m.announceFreed(m.domainByRecord(x.Device), x.Name, why)
	}
}

// markSilent records that an executor cannot be reached. If it has jobs, it may be training; if it has none, it may
// still have a context.
func (m *Machine) markSilent(x *fleet.Executor) {
	d := m.domainByRecord(x.Device)
	m.changed = true
	if !m.hasJobs(x.Name) && d.config.Context == 0 {
		x.Enter(fleet.Gone)
		m.emitEvent(Event{Kind: ExecutorEnded, Executor: x.Name, Detail: x.SilenceText(m.now)})
		m.departed = append(m.departed, x.Name)
		return
	}
	x.Enter(fleet.Silent)
	m.emitEvent(Event{Kind: OutOfReach, Executor: x.Name, Detail: x.SilenceText(m.now)})
	for _, j := range m.jobs {
		if j.record.Executor == x.Name && j.canChangePlan() {
			j.markUnreachable(x)
		}
	}
	for _, j := range m.jobs {
		if j.record.Executor == x.Name && j.isReplica() && j.hasExecutor() {
			m.carryOut(j, m.disconnection(j, fmt.Sprintf("executor %s cannot be reached", x.Name)))
		}
	}
	// The executor may use its whole claim beside the others from now on.
	if d.config.sharesMemory() && d.isOverfull() {
		d.pending.replan = newReason(Processes, "executor %s cannot be reached", x.Name)
	}
}

// markUnreachable records that the job may be training at an executor that cannot be reached.
func (j *job) markUnreachable(x *fleet.Executor) {
	j.enter(wire.JobUnknown, fmt.Sprintf("executor %s cannot be reached", x.Name))
	j.record.Wait.For = wire.WaitExecutor
}

// markReachable records that the job is at an executor that can be reached.
func (j *job) markReachable() {
	if j.record.Applied > 0 {
		j.enter(wire.JobRunning, "")
	} else {
		j.enter(wire.JobStarting, "")
	}
}

// isUnreachable reports whether a job is at an executor that cannot be reached.
func (m *Machine) isUnreachable(j *job) bool {
	x := m.executors[j.record.Executor]
	return x != nil && x.IsSilent()
}

// executorReturned has plans made with an executor that is heard of again.
func (m *Machine) executorReturned(x *fleet.Executor) {
	d := m.domainByRecord(x.Device)
	m.changed = true
	m.retryAdmission(d) // jobs that are parked there may go on
	m.unblock()
	m.emitEvent(Event{Kind: ExecutorReturned, Executor: x.Name})
	for _, j := range m.jobs {
		if j.record.Executor != x.Name || !j.isActive() {
			continue
		}
		d.pending.replan, d.pending.mandatory = newReason(Processes, "executor %s is back", x.Name), true
		if j.record.State == wire.JobUnknown {
			j.markReachable()
		}
	}
}

// giveUpExecutor has the jobs of an executor that cannot be reached go on elsewhere. What they may have there stays
// reserved. The executor is told to end them when it is back.
func (m *Machine) giveUpExecutor(x *fleet.Executor) {
	why := fmt.Sprintf("executor %s is given up: %s", x.Name, x.SilenceText(m.now))
	for _, j := range m.jobs {
		if j.record.Executor != x.Name || !j.hasExecutor() {
			continue
		}
		m.changed = true
		if !j.isReplica() { // otherwise restartGang reserves what all may have
			m.keepReservation(j)
		}
		m.lose(j, recovery.GivenUp, why)
	}
	if x.Rival != nil { // the second process takes the name
		delete(m.executors, x.Name)
		m.emitEvent(Event{Kind: ExecutorEnded, Executor: x.Name, Detail: why})
		m.applyStatus(x.Rival)
	}
}
