package controller

import (
	"fmt"
	"slices"
	"strings"

	"tensile/controller/gang"
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

// chooseRestPoint chooses after how many iterations replicas rest, or take a checkpoint. late says that they heard too
// late of the one before.
func (m *Machine) chooseRestPoint(g []*job, late bool) {
	replicas := make([]gang.Progress, len(g))
	for i, j := range g {
		replicas[i] = gang.Progress{Begun: max(j.replica.iterationsBegun, j.record.Iteration, j.record.At),
			Margin: j.replica.margin, Iteration: j.iterationTime}
		if j.canChangePlan() {
			replicas[i].Every = j.record.Spec.Checkpoint.Every
		}
	}
	at, margin := gang.RestPoint(replicas, late)
	for _, j := range g {
		j.record.At, j.replica.margin, j.replica.resting = min(at, j.record.Spec.Iterations), margin, false
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

// Which checkpoints all replicas of a gang have: from the newest of these they go on together.

// orderTimedCheckpoints has gangs take a checkpoint when it is time for one and they have passed the one before. If not
// all replicas have taken that, some heard of it too late or could not write it.
func (m *Machine) orderTimedCheckpoints() {
	for _, j := range m.jobs {
		every := j.record.Spec.Checkpoint.Every
		if every == 0 || !j.isReplica() || j.record.Spec.Replica.Number > 0 ||
			m.now-j.replica.checkpointOrdered < every {
			continue
		}
		g := m.gang(j)
		idle := func(o *job) bool { return o.record.State != wire.JobRunning || o.replica.finalStatus != nil }
		if j.replica.checkpointOrdered == 0 || slices.ContainsFunc(g, idle) {
			if j.record.State == wire.JobRunning && j.replica.checkpointOrdered == 0 {
				j.replica.checkpointOrdered = m.now
			}
			continue
		}
		comes := func(o *job) bool { return max(o.replica.iterationsBegun, o.record.Iteration) <= j.record.At }
		if j.record.At > 0 && slices.ContainsFunc(g, comes) {
			continue // the replicas are still to take it, however long an iteration is
		}
		j.replica.checkpointOrdered = m.now
		m.chooseRestPoint(g, j.record.At > 0)
	}
}

// newestCommonCheckpoint is after how many iterations the newest checkpoint was taken that all replicas of a gang have.
// 0: there is none.
func newestCommonCheckpoint(g []*job) int {
	from, all := 0, make([]gang.Checkpoints, len(g))
	for i, j := range g {
		from, all[i] = max(from, j.record.From), j.replica.checkpoints
	}
	return gang.NewestCommon(from, all, g[0].record.Spec.Checkpoint.Iterations)
}

// How a gang restarts when one of its replicas is lost: part (d) of replicas.go.

// endPeers ends the peers of a replica that is over and has not finished. If it has failed, the checkpoints of all
// stay, also of those that have finished, so that a user can go on from them.
func (m *Machine) endPeers(j *job) {
	for _, o := range m.gang(j) {
		if o.record.State.Over() {
			continue
		}
		if o.replica.finalStatus == nil || j.record.State == wire.JobFailed {
			m.keepReservation(o)
		}
		why := j.record.Reason
		if why != "" && !strings.HasPrefix(why, "replica ") {
			why = fmt.Sprintf("replica %s: %s", j.record.Spec.Name, why)
		}
		o.record.Diverged = j.record.Diverged
		m.endJob(o, j.record.State, why, o.replica.finalStatus)
	}
}

// keepReservation reserves what an executor may have of a job that is taken from it, until the executor is known to
// have it no more. The job's checkpoints stay there (wire.Orders.Elsewhere).
func (m *Machine) keepReservation(j *job) {
	x := m.executors[j.record.Executor]
	if x == nil || x.IsGone() || x.Life == "" || !j.hasExecutor() {
		return
	}
	claim, host := j.claim().Arena, j.hostClaim()
	c := &m.domainByRecord(x.Device).config
	if claim > 0 || x.IsSilent() && c.Context > 0 || host > 0 && c.HostMemory > 0 {
		j.record.Held = append(slices.Clone(j.record.Held), wire.Holding{Executor: x.Name, Life: x.Life,
			ID: j.record.Spec.ID, Incarnation: j.record.Incarnation, Bytes: claim, Host: host,
			On: x.Device})
	}
}

// detachGang takes the replicas of a gang from their executors. What is left of them is the newest checkpoint that all
// have.
func (m *Machine) detachGang(g []*job) {
	common := newestCommonCheckpoint(g)
	for _, j := range g {
		if !j.replica.leftExecutor {
			m.keepReservation(j)
		}
		j.record.From = common
		m.detachJob(j)
	}
}

// otherExecutorMayTake reports whether an executor may take a job that has not found its checkpoint at others.
func (m *Machine) otherExecutorMayTake(j *job) bool {
	return j.domain != nil && j.domain.vacantExecutor(j, nil) != "" || len(m.domains) > 1 &&
		len(m.candidateDevices(j)) > 0
}

// healGangs makes the replicas of each gang agree. A controller that was killed while it stored them may have left them
// in different states. Where not all of them are stored, nobody has heard that they were taken, and they end.
func (m *Machine) healGangs() {
	for _, j := range slices.Clone(m.jobs) {
		if n := len(m.gang(j)); j.isReplica() && !j.record.State.Over() && n < j.record.Spec.Replica.Of {
			m.keepReservation(j)
			m.endJob(j, wire.JobFailed, fmt.Sprintf("the controller was killed when it had stored %d of its %d "+
				"replicas: submit it again", n, j.record.Spec.Replica.Of), nil)
		}
		if !j.isReplica() || j.record.Spec.Replica.Number > 0 {
			continue
		}
		g := m.gang(j)
		stage := func(o *job) wire.JobState {
			switch s := o.record.State; {
			case s.Over() || s == wire.JobStopping || s == wire.JobParking || s == wire.JobParked:
				return s
			case o.claim().IsZero():
				return wire.JobQueued
			}
			return wire.JobRunning
		}
		var odd *job
		for _, o := range g {
			o.replica.running = o.canChangePlan()
			if stage(o) != stage(j) {
				odd = o
			}
		}
		done := func(o *job) bool { return o.record.State == wire.JobFinished }
		if odd == nil || slices.ContainsFunc(g, done) { // the others will report that they have finished
			continue
		}
		const why = "the controller was started again before all replicas had heard"
		for _, s := range [...]wire.JobState{wire.JobFailed, wire.JobStopped, wire.JobStopping, wire.JobParking,
			wire.JobParked, wire.JobRunning} {
			at := slices.IndexFunc(g, func(o *job) bool { return stage(o) == s })
			if at < 0 {
				continue
			}
			if s.Over() {
				m.endPeers(g[at])
			} else {
				m.carryOut(g[at], m.restartOfGang(g[at], why, false))
			}
			break
		}
	}
}
