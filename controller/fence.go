package controller

import (
	"fmt"
	"slices"
	"time"

	"tensile/graph"
	"tensile/wire"
)

// An executor whose process has ended for certain is dead: its parent, the lock that it held, or itself says so. One
// that is only silent may be training: what it has stays reserved, and its jobs are unknown, until it is heard again or
// given up. Then its jobs go on elsewhere, in another incarnation, and what it may have stays reserved until it is
// known to be gone.

// reachable are the jobs that are planned for.
func (d *domain) reachable() []*job {
	return slices.DeleteFunc(d.active(), func(j *job) bool { return j.record.State == wire.JobUnknown || j.hurt != "" })
}

// reserved is the part of the budget that executors out of reach may have, with their contexts.
func (d *domain) reserved() (sum graph.Bytes) {
	for j := range d.jobs() {
		if j.record.State == wire.JobUnknown || j.hurt != "" && j.active() {
			sum += j.claim().Arena
		}
	}
	held, _ := d.held()
	return sum + held + d.outOfReach().Sum()
}

// bury takes an executor out whose process has ended. What its jobs had is free, and they go on from their checkpoints.
func (m *Machine) bury(x *executor, why string) {
	x.gone, x.dead, m.changed = true, true, true
	m.unstick()
	m.event(Event{Kind: Left, Executor: x.name, Why: why})
	for _, j := range m.jobs {
		if j.record.Executor == x.name && j.placed() {
			m.lost(j, why)
		}
	}
	m.release(x.name, func(life string) bool { return life == x.life }, why)
	m.forgets = append(m.forgets, x.name)
}

// lost has a job of a dead executor go on as far as it may.
func (m *Machine) lost(j *job, why string) {
	if j.record.Spec.Script && j.record.State != wire.JobStopping {
		m.over(j, wire.JobFailed, why, nil) // who joins it starts it
		return
	}
	if j.replica() {
		m.scatter(j, why, true)
		return
	}
	rests := j.record.State == wire.JobQueued || j.record.State == wire.JobParked || j.record.State == wire.JobParking
	if rests && j.record.Iteration > 0 && j.record.Checkpoint == nil && j.record.Spec.Restarts == 0 {
		m.over(j, wire.JobFailed, why, nil) // it would begin again
		return
	}
	switch j.record.State {
	case wire.JobQueued:
		away := m.away(j)
		if m.displace(j); away { // while it was nobody planned for it
			m.admit(j.domain)
			j.record.Reason = fmt.Sprintf("goes on from iteration %d: %s", j.record.Iteration, why)
		}
	case wire.JobParked:
		m.displace(j)
		j.record.Park = wire.OnDisk
	case wire.JobParking:
		m.displace(j)
		j.record.Park = wire.OnDisk
		m.parked(j)
	case wire.JobStopping:
		m.over(j, wire.JobStopped, why, nil)
	default:
		if !m.elsewhere(j, why) && !m.restart(j, why) {
			m.over(j, wire.JobFailed, why, nil)
		}
	}
}

// died hears that a process has ended that was called as an executor is.
func (m *Machine) died(name, life, why string) {
	if x := m.executors[name]; x != nil && !x.gone && x.life == life {
		m.bury(x, why)
	}
	m.release(name, func(l string) bool { return l == life }, why)
}

// release gives back what some processes of an executor's name may have had; it reports whether there was any.
func (m *Machine) release(name string, ended func(life string) bool, why string) bool {
	var of *domain
	for _, j := range m.jobs {
		j.record.Held = slices.DeleteFunc(slices.Clone(j.record.Held), func(h wire.Holding) bool { // others have it too
			if h.Executor != name || !ended(h.Life) {
				return false
			}
			of = m.named(h.On)
			return true
		})
	}
	if of != nil {
		m.freed(of, name, why)
	}
	return of != nil
}

func (m *Machine) freed(d *domain, name, why string) {
	m.changed = true
	m.admit(d)
	m.unstick()
	m.event(Event{Kind: Freed, Executor: name, Why: why})
	if !m.config.NoReplan {
		d.want.better = because(Processes, "executor %s has given its memory back", name)
	}
}

// holds takes back what an executor does not have any more, as it says itself. s must be an answer to its newest
// orders: what it hears of only later it may take up. A job without an arena may be between two of them, and one that
// has finished there keeps the checkpoints with which it goes on elsewhere only when the executor is told so.
func (m *Machine) holds(x *executor, s *wire.Status) {
	if s.Orders < x.orders.Number {
		return
	}
	any, why := false, "it is back"
	for _, j := range m.jobs {
		n := len(j.record.Held)
		j.record.Held = slices.DeleteFunc(slices.Clone(j.record.Held), func(h wire.Holding) bool { // as above
			named := func(a wire.Assignment) bool { return a.Spec.ID == h.ID && a.Incarnation == h.Incarnation }
			has := func(js wire.JobStatus) bool {
				old := js.ID == 0 && js.Name == j.record.Spec.Name // it is to go, and another of its name follows
				return old || js.ID == h.ID && js.Incarnation == h.Incarnation
			}
			return h.Executor == x.name && h.Life == x.life && !slices.ContainsFunc(x.orders.Jobs, named) &&
				!slices.ContainsFunc(s.Jobs, has)
		})
		if len(j.record.Held) < n {
			if any = true; j.replica() {
				why = "its replicas have left it"
			}
		}
	}
	if any {
		m.freed(x.domain, x.name, why)
	}
}

// silence takes down that an executor cannot be reached. If it has jobs, it may be training; also one that has none
// may have a context.
func (m *Machine) silence(x *executor) {
	d := x.domain
	m.changed = true
	if !m.busy(x.name) && d.config.Context == 0 {
		x.gone = true
		m.event(Event{Kind: Left, Executor: x.name, Why: silentFor(m.now - x.heard)})
		m.forgets = append(m.forgets, x.name)
		return
	}
	x.silent = true
	m.event(Event{Kind: OutOfReach, Executor: x.name, Why: silentFor(m.now - x.heard)})
	for _, j := range m.jobs {
		if j.record.Executor == x.name && j.goesOn() {
			j.unknown(x)
		}
	}
	for _, j := range m.jobs {
		if j.record.Executor == x.name && j.replica() && j.placed() {
			m.alone(j, fmt.Sprintf("executor %s cannot be reached", x.name))
		}
	}
	if d.config.shares() && d.overfull() { // by what it may hold beside the others from now on
		d.want.better = because(Processes, "executor %s cannot be reached", x.name)
	}
}

// unknown takes down that a job may be training at an executor that cannot be reached.
func (j *job) unknown(x *executor) {
	j.record.State = wire.JobUnknown
	j.record.Reason = fmt.Sprintf("executor %s cannot be reached", x.name)
}

// known takes down that a job is at an executor that can be reached.
func (j *job) known() {
	j.record.State, j.record.Reason = wire.JobStarting, ""
	if j.record.Applied > 0 {
		j.record.State = wire.JobRunning
	}
}

// away reports whether a job rests at an executor that cannot be reached.
func (m *Machine) away(j *job) bool {
	x := m.executors[j.record.Executor]
	return x != nil && x.silent
}

func silentFor(d time.Duration) string {
	return fmt.Sprintf("it has not been heard of for %v", d.Round(time.Second))
}

// back takes down that an executor is heard of again.
func (m *Machine) back(x *executor) {
	x.silent, m.changed = false, true
	m.admit(x.domain) // jobs that rest there may go on
	m.unstick()
	m.event(Event{Kind: Back, Executor: x.name})
	for _, j := range m.jobs {
		if j.record.Executor != x.name || !j.active() {
			continue
		}
		d := x.domain
		d.want.better, d.want.must = because(Processes, "executor %s is back", x.name), true
		if j.record.State == wire.JobUnknown {
			j.known()
		}
	}
}

// giveUp has the jobs of an executor that cannot be reached go on elsewhere. What they may have there stays reserved.
// The executor is told to end them when it is back.
func (m *Machine) giveUp(x *executor) {
	why := fmt.Sprintf("executor %s is given up: %s", x.name, silentFor(m.now-x.heard))
	for _, j := range m.jobs {
		if j.record.Executor != x.name || !j.placed() {
			continue
		}
		m.changed = true
		if j.replica() {
			m.scatter(j, why, true) // which holds what all may have
			continue
		}
		m.hold(j)
		switch {
		case j.record.State != wire.JobUnknown && !j.goesOn():
			m.lost(j, why)
		case !m.restart(j, why): // also one that has not begun: what it was granted there is no other's
			m.over(j, wire.JobFailed, why, nil)
		}
	}
	if x.rival != nil { // it takes the name
		delete(m.executors, x.name)
		m.event(Event{Kind: Left, Executor: x.name, Why: why})
		m.status(x.rival)
	}
}
