package controller

import (
	"math"
	"slices"
	"time"

	"tensile/wire"
)

// How siblings rest, leave and end together, after the same number of iterations: (c) of replicas.go.

// home reports whether all siblings of a replica rest, or have nothing to do any more.
func (m *Machine) home(j *job) bool {
	return !slices.ContainsFunc(m.siblings(j), func(o *job) bool {
		s := &o.sibling
		return !s.rests && !s.left && s.ended == nil && !o.record.State.Over()
	})
}

// chooseAt has siblings rest, or take a checkpoint, after more iterations than any has begun: by so many that they hear
// of it in time, and by twice as many if they heard too late of the number before. Of a checkpoint that cannot be
// written the same is seen: so they are at most those of the time between two.
func (m *Machine) chooseAt(g []*job, late bool) {
	begun, least, wanted, most := 0, 2, 0, math.MaxInt
	for _, j := range g {
		begun = max(begun, j.sibling.issued, j.record.Iteration, j.record.At)
		if wanted = max(wanted, j.sibling.margin); j.pace == 0 {
			continue
		}
		least = max(least, 2+int(time.Second/j.pace))
		if every := j.record.Spec.Checkpoint.Every; every > 0 && j.goesOn() {
			most = min(most, int(every/j.pace))
		}
	}
	if late {
		wanted *= 2
	}
	margin := max(least, min(wanted, most))
	for _, j := range g {
		j.record.At, j.sibling.margin, j.sibling.rests = min(begun+margin, j.record.Spec.Iterations), margin, false
	}
	m.changed = true
}

// ordersRest says how a replica is ordered to rest: none ends or leaves before all rest.
func (m *Machine) ordersRest(j *job, a *wire.Assignment) {
	if a.At = j.record.At; (a.Stop || a.Park == wire.OnDisk) && !m.home(j) {
		a.Stop, a.Park = false, wire.InMemory
	}
	r := j.record.Spec.Replica
	for _, o := range m.siblings(j) {
		if o.record.Spec.Replica.Number == r.Number-1 {
			a.Neighbour = o.sibling.meets
		}
	}
}

// rested takes down whether a replica rests as it was told. When all do they are parked, or told to leave or to end. At
// rises for one that has begun too many iterations, also for one that was to take a checkpoint then.
func (m *Machine) rested(j *job, s *wire.JobStatus, answers bool) {
	resting := j.record.State == wire.JobParking || j.record.State == wire.JobStopping
	rests := j.rests() || resting
	switch at := j.record.At; {
	case !answers:
		return
	case j.goesOn() && at > 0 && s.Iteration <= at && min(s.Begun, j.record.Spec.Iterations) > at && !j.has(at):
		m.chooseAt(m.siblings(j), true) // it takes no checkpoint there
		return
	case !rests:
		return
	}
	was := j.sibling.rests
	j.sibling.rests = s.State == wire.Resting && s.Arena == 0 && s.Iteration == j.record.At
	late := !j.sibling.rests && max(min(s.Begun, j.record.Spec.Iterations), s.Iteration) > j.record.At
	g := m.siblings(j)
	switch {
	case resting && late:
		m.chooseAt(g, true)
	case !resting || was == j.sibling.rests || !m.home(j):
	case j.record.State == wire.JobParking && j.record.Park == wire.InMemory:
		for _, o := range g {
			m.parked(o)
		}
	default:
		m.changed = true // they are told to leave, or to end
	}
}

// endTogether ends siblings when all have finished, or were stopped.
func (m *Machine) endTogether(j *job) {
	g := m.siblings(j)
	stopped := j
	for _, o := range g {
		switch {
		case o.record.State.Over():
		case o.sibling.ended == nil:
			m.alone(j, "the connection to another replica broke")
			return
		case o.sibling.ended.State == wire.Stopped:
			stopped = o
		}
	}
	if stopped.sibling.ended.State == wire.Stopped {
		m.over(stopped, wire.JobStopped, "", stopped.sibling.ended.Result) // and with it the others
		return
	}
	for _, o := range g {
		if !o.record.State.Over() {
			m.over(o, wire.JobFinished, "", o.sibling.ended.Result)
		}
	}
}

// leaveTogether has siblings be parked on disk when all have left their executors.
func (m *Machine) leaveTogether(j *job) {
	g := m.siblings(j)
	if !slices.ContainsFunc(g, func(o *job) bool { return !o.sibling.left }) {
		m.begone(g)
		for _, o := range g {
			o.record.Park = wire.OnDisk
			m.parked(o)
		}
	}
}
