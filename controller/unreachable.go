package controller

import (
	"fmt"
	"slices"
	"time"

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

// removeDead removes an executor whose process has ended. The memory of its jobs is free, and they go on from their
// checkpoints.
func (m *Machine) removeDead(x *executor, why string) {
	x.gone, x.dead, m.changed = true, true, true
	m.unblock()
	m.emitEvent(Event{Kind: ExecutorEnded, Executor: x.name, Detail: why})
	for _, j := range m.jobs {
		if j.record.Executor == x.name && j.hasExecutor() {
			m.recoverLost(j, why)
		}
	}
	m.releaseReservations(x.name, func(life string) bool { return life == x.life }, why)
	m.departed = append(m.departed, x.name)
}

// recoverLost has a job of a dead executor go on as far as it may.
func (m *Machine) recoverLost(j *job, why string) {
	if j.record.Spec.Script && j.record.State != wire.JobStopping {
		m.endJob(j, wire.JobFailed, why, nil) // the user who joined the script starts it again
		return
	}
	if j.isReplica() {
		m.restartGang(j, why, true)
		return
	}
	rests := j.record.State == wire.JobQueued || j.record.State == wire.JobParked || j.record.State == wire.JobParking
	if rests && j.record.Iteration > 0 && j.record.Checkpoint == nil && j.record.Spec.Restarts == 0 {
		m.endJob(j, wire.JobFailed, why, nil) // it would begin from scratch
		return
	}
	switch j.record.State {
	case wire.JobQueued:
		away := m.isUnreachable(j)
		if m.detachJob(j); away { // nobody planned for it while it was unreachable
			m.retryAdmission(j.domain)
			j.waitFor(wire.Wait{}, fmt.Sprintf("goes on from iteration %d: %s", j.record.Iteration, why))
		}
	case wire.JobParked:
		m.detachJob(j)
		j.record.Park = wire.OnDisk
	case wire.JobParking:
		m.detachJob(j)
		j.record.Park = wire.OnDisk
		m.recordParked(j)
	case wire.JobStopping:
		m.endJob(j, wire.JobStopped, why, nil)
	default:
		if !m.reassignUnstarted(j, why) && !m.restartJob(j, why) {
			m.endJob(j, wire.JobFailed, why, nil)
		}
	}
}

// processEnded takes the news that a process with the name of an executor has ended.
func (m *Machine) processEnded(name, life, why string) {
	if x := m.executors[name]; x != nil && !x.gone && x.life == life {
		m.removeDead(x, why)
	}
	m.releaseReservations(name, func(l string) bool { return l == life }, why)
}

// releaseReservations gives back what some processes of an executor's name may have had, and reports whether there was
// anything.
func (m *Machine) releaseReservations(name string, ended func(life string) bool, why string) bool {
	var of *domain
	for _, j := range m.jobs {
		// The slice is shared with stored records: it is not changed in place.
		j.record.Held = slices.DeleteFunc(slices.Clone(j.record.Held), func(h wire.Holding) bool {
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

// settleReservations gives back what an executor has no more, as it says itself. s must answer its newest orders:
// otherwise it may yet take up what they say. A job without an arena may be between two of them. One that has finished
// there keeps the checkpoints with which it goes on elsewhere only if the executor is told so.
func (m *Machine) settleReservations(x *executor, s *wire.Status) {
	if s.Orders < x.orders.Number {
		return
	}
	any, why := false, "it is back"
	for _, j := range m.jobs {
		n := len(j.record.Held)
		// The slice is shared with stored records: it is not changed in place.
		j.record.Held = slices.DeleteFunc(slices.Clone(j.record.Held), func(h wire.Holding) bool {
			named := func(a wire.Assignment) bool { return a.Spec.ID == h.ID && a.Incarnation == h.Incarnation }
			has := func(js wire.JobStatus) bool {
				// An old job of this name is to leave before this one comes.
				old := js.ID == 0 && js.Name == j.record.Spec.Name
				return old || js.ID == h.ID && js.Incarnation == h.Incarnation
			}
			return h.Executor == x.name && h.Life == x.life && !slices.ContainsFunc(x.orders.Jobs, named) &&
				!slices.ContainsFunc(s.Jobs, has)
		})
		if len(j.record.Held) < n {
			if any = true; j.isReplica() {
				why = "its replicas have left it"
			}
		}
	}
	if any {
		m.announceFreed(x.domain, x.name, why)
	}
}

// markSilent records that an executor cannot be reached. If it has jobs, it may be training; if it has none, it may
// still have a context.
func (m *Machine) markSilent(x *executor) {
	d := x.domain
	m.changed = true
	if !m.hasJobs(x.name) && d.config.Context == 0 {
		x.gone = true
		m.emitEvent(Event{Kind: ExecutorEnded, Executor: x.name, Detail: silenceText(m.now - x.lastHeard)})
		m.departed = append(m.departed, x.name)
		return
	}
	x.silent = true
	m.emitEvent(Event{Kind: OutOfReach, Executor: x.name, Detail: silenceText(m.now - x.lastHeard)})
	for _, j := range m.jobs {
		if j.record.Executor == x.name && j.canChangePlan() {
			j.markUnreachable(x)
		}
	}
	for _, j := range m.jobs {
		if j.record.Executor == x.name && j.isReplica() && j.hasExecutor() {
			m.restartDisconnected(j, fmt.Sprintf("executor %s cannot be reached", x.name))
		}
	}
	// The executor may use its whole claim beside the others from now on.
	if d.config.sharesMemory() && d.isOverfull() {
		d.pending.replan = newReason(Processes, "executor %s cannot be reached", x.name)
	}
}

// markUnreachable records that the job may be training at an executor that cannot be reached.
func (j *job) markUnreachable(x *executor) {
	j.enter(wire.JobUnknown, fmt.Sprintf("executor %s cannot be reached", x.name))
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
	return x != nil && x.silent
}

// silenceText says for how long an executor was not heard of.
func silenceText(d time.Duration) string {
	return fmt.Sprintf("it has not been heard of for %v", d.Round(time.Second))
}

// markReachable records that an executor is heard of again.
func (m *Machine) markReachable(x *executor) {
	x.silent, m.changed = false, true
	m.retryAdmission(x.domain) // jobs that are parked there may go on
	m.unblock()
	m.emitEvent(Event{Kind: ExecutorReturned, Executor: x.name})
	for _, j := range m.jobs {
		if j.record.Executor != x.name || !j.isActive() {
			continue
		}
		d := x.domain
		d.pending.replan, d.pending.mandatory = newReason(Processes, "executor %s is back", x.name), true
		if j.record.State == wire.JobUnknown {
			j.markReachable()
		}
	}
}

// giveUpExecutor has the jobs of an executor that cannot be reached go on elsewhere. What they may have there stays
// reserved. The executor is told to end them when it is back.
func (m *Machine) giveUpExecutor(x *executor) {
	why := fmt.Sprintf("executor %s is given up: %s", x.name, silenceText(m.now-x.lastHeard))
	for _, j := range m.jobs {
		if j.record.Executor != x.name || !j.hasExecutor() {
			continue
		}
		m.changed = true
		if j.isReplica() {
			m.restartGang(j, why, true) // restartGang reserves what all may have
			continue
		}
		m.keepReservation(j)
		switch {
		case j.record.State != wire.JobUnknown && !j.canChangePlan():
			m.recoverLost(j, why)
		case !m.restartJob(j, why): // also one that has not begun, as its memory there stays reserved
			m.endJob(j, wire.JobFailed, why, nil)
		}
	}
	if x.duplicate != nil { // the second process takes the name
		delete(m.executors, x.name)
		m.emitEvent(Event{Kind: ExecutorEnded, Executor: x.name, Detail: why})
		m.applyStatus(x.duplicate)
	}
}
