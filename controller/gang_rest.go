package controller

import (
	"math"
	"slices"
	"time"

	"tensile/wire"
)

// How the replicas of a gang rest, leave and end together, after the same number of iterations: part (c) of
// replicas.go.

// isGangAtRest reports whether all replicas of a gang rest, or have nothing more to do.
func (m *Machine) isGangAtRest(j *job) bool {
	return !slices.ContainsFunc(m.gang(j), func(o *job) bool {
		s := &o.replica
		return !s.resting && !s.leftExecutor && s.finalStatus == nil && !o.record.State.Over()
	})
}

// chooseRestPoint chooses after how many iterations replicas rest, or take a checkpoint: more than any of them has
// begun. The margin is large enough for them to hear of it in time, and twice the one before if they heard too late of
// that. They seem to hear too late also of a checkpoint that cannot be written; so the margin is at most the iterations
// between two checkpoints.
func (m *Machine) chooseRestPoint(g []*job, late bool) {
	begun, least, wanted, most := 0, 2, 0, math.MaxInt
	for _, j := range g {
		begun = max(begun, j.replica.iterationsBegun, j.record.Iteration, j.record.At)
		if wanted = max(wanted, j.replica.margin); j.iterationTime == 0 {
			continue
		}
		least = max(least, 2+int(time.Second/j.iterationTime))
		if every := j.record.Spec.Checkpoint.Every; every > 0 && j.canChangePlan() {
			most = min(most, int(every/j.iterationTime))
		}
	}
	if late {
		wanted *= 2
	}
	margin := max(least, min(wanted, most))
	for _, j := range g {
		j.record.At, j.replica.margin, j.replica.resting = min(begun+margin, j.record.Spec.Iterations), margin, false
	}
	m.changed = true
}

// orderRest fills in an assignment after how many iterations a replica rests. No replica ends or leaves before all
// rest.
func (m *Machine) orderRest(j *job, a *wire.Assignment) {
	if a.At = j.record.At; (a.Stop || a.Park == wire.OnDisk) && !m.isGangAtRest(j) {
		a.Stop, a.Park = false, wire.InMemory
	}
	r := j.record.Spec.Replica
	for _, o := range m.gang(j) {
		if o.record.Spec.Replica.Number == r.Number-1 {
			a.Neighbour = o.replica.meeting
		}
	}
}

// recordRest records whether a replica rests as it was told. When all do, they are parked, or told to leave or to end.
// Record.At is raised for all if one of them has begun too many iterations when it hears of it, also where it was to
// take a checkpoint then.
func (m *Machine) recordRest(j *job, s *wire.JobStatus, answers bool) {
	resting := j.record.State == wire.Parking || j.record.State == wire.Ending
	rests := j.restsInMemory() || resting
	switch at := j.record.At; {
	case !answers:
		return
	case j.canChangePlan() && at > 0 && s.Iteration <= at && min(s.Begun, j.record.Spec.Iterations) > at &&
		!j.hasCheckpoint(at):
		m.chooseRestPoint(m.gang(j), true) // the replica takes no checkpoint at this one
		return
	case !rests:
		return
	}
	was := j.replica.resting
	j.replica.resting = s.State == wire.Resting && s.Arena == 0 && s.Iteration == j.record.At
	late := !j.replica.resting && max(min(s.Begun, j.record.Spec.Iterations), s.Iteration) > j.record.At
	g := m.gang(j)
	switch {
	case resting && late:
		m.chooseRestPoint(g, true)
	case !resting || was == j.replica.resting || !m.isGangAtRest(j):
	case j.record.State == wire.Parking && j.record.Park == wire.InMemory:
		for _, o := range g {
			m.recordParked(o)
		}
	default:
		m.changed = true // so that orders tell them to leave, or to end
	}
}

// endGang ends the replicas of a gang when all have finished, or were stopped.
func (m *Machine) endGang(j *job) {
	g := m.gang(j)
	stopped := j
	for _, o := range g {
		switch {
		case o.record.State.Over():
		case o.replica.finalStatus == nil:
			m.restartDisconnected(j, "the connection to another replica broke")
			return
		case o.replica.finalStatus.State == wire.Stopped:
			stopped = o
		}
	}
	if stopped.replica.finalStatus.State == wire.Stopped {
		m.endJob(stopped, wire.Halted, "", stopped.replica.finalStatus.Result) // which ends the others too
		return
	}
	for _, o := range g {
		if !o.record.State.Over() {
			m.endJob(o, wire.Done, "", o.replica.finalStatus.Result)
		}
	}
}

// parkGangOnDisk has the replicas of a gang parked on disk when all have left their executors.
func (m *Machine) parkGangOnDisk(j *job) {
	g := m.gang(j)
	if !slices.ContainsFunc(g, func(o *job) bool { return !o.replica.leftExecutor }) {
		m.detachGang(g)
		for _, o := range g {
			o.record.Park = wire.OnDisk
			m.recordParked(o)
		}
	}
}
