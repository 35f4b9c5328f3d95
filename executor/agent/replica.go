package agent

import (
	"cmp"

	"tensile/wire"
)

// isReplica reports whether a job is a replica whose controller says after how many iterations it rests, ends and takes
// checkpoints: after as many as its siblings, with which each of its iterations is trained.
func (j *job) isReplica() bool { return j.spec.Replica.Of > 0 }

// mustRestOrEnd reports whether the orders have the job rest or end.
func (j *job) mustRestOrEnd() bool { return j.stop || j.park != "" }

// advanceReplica takes a replica as far as it can go now.
func (m *Machine) advanceReplica(j *job) {
	m.connectReplica(j)
	switch {
	case m.interruption != nil: // what it has begun may need siblings that rest, or that are gone
		j.lingers = true
		if j.takesCheckpoints() {
			m.endJob(j, wire.Suspended, errorLine(m.interruption))
		} else {
			m.interruptJob(j)
		}
		m.advanceJob(j)
	case j.task == nil, !j.hosted && (!j.mustRestOrEnd() || j.actAt > j.status.Iteration):
		m.setState(j, wire.Waiting)
		m.fetch(j)
	case !j.hosted && j.stop:
		m.endJob(j, wire.Stopped, "before it went on")
	case !j.hosted && j.park == wire.OnDisk:
		m.endJob(j, wire.Suspended, "")
	case !j.hosted:
		m.setState(j, wire.Resting)
	case j.mustRestOrEnd():
		m.takeAt(j)
		m.restAt(j)
		m.fetch(j)
	default:
		m.followParkOrder(j)
		m.takeAt(j)
		m.fetch(j)
	}
}

// connectReplica tells a replica to listen for the next one, once it is known where the replica begins, and to join the
// one before it, once it is known where that listens.
func (m *Machine) connectReplica(j *job) {
	if j.task == nil {
		return
	}
	if !j.meetSent {
		j.meetSent = true
		begin := 0
		if j.begin != nil {
			begin = j.begin.Iteration
		}
		m.emit(Output{Meet: &Meet{j.ticket, j.spec, *j.task, begin}})
	}
	if n := j.neighbour; n != nil && *n != j.joinSent {
		j.joinSent = *n
		m.emit(Output{Join: &Join{j.spec.Name, *n}})
	}
}

// closeConnections ends a replica's connections to the others, which notice that.
func (m *Machine) closeConnections(j *job) {
	if j.meetSent && !j.partSent {
		j.partSent = true
		m.emit(Output{Part: j.spec.Name})
	}
}

// handleMet records where a replica listens.
func (m *Machine) handleMet(r *Met) {
	switch j := m.findBy(func(j *job) bool { return j.ticket == r.Ticket }); {
	case j == nil || j.status.State.Over():
	case r.Err != nil && j.hosted:
		m.failHosted(j, r.Err)
	case r.Err != nil:
		m.fail(j, r.Err)
	default:
		j.status.Meets, m.changed = r.Meeting, true
	}
}

// restAt parks a replica that the host has after the ordered number of iterations, and then ends or suspends it if that
// is ordered.
func (m *Machine) restAt(j *job) {
	switch {
	case j.status.Begun > j.actAt: // too late, as the status says
	case j.actAt == 0:
		j.status.Begun, m.changed = 1, true // the host begins it
	case !j.parkSent || j.parkAt != j.actAt:
		if j.status.State == wire.Resting {
			m.setState(j, wire.Waiting)
		}
		j.parkAt = j.actAt
		m.park(j)
	case !j.resting:
	case j.stop && !j.stopSent:
		j.stopSent = true
		m.emit(Output{Stop: j.spec.Name})
	case j.stop:
	case j.park == wire.OnDisk:
		m.suspend(j)
	}
}

// takeAt tells the host to take the state of a replica at the next multiple of its interval, or when it is ordered.
func (m *Machine) takeAt(j *job) {
	at, every := j.actAt, j.spec.Checkpoint.Iterations
	if every > 0 {
		at = (j.lastTry.iteration/every + 1) * every
	}
	switch {
	case !j.takesCheckpoints() || at <= j.lastTry.iteration || at >= j.spec.Iterations ||
		j.status.Iteration < j.lastTry.iteration:
	// the controller says when to rest, or it does not come so far
	case j.mustRestOrEnd() && (every == 0 || at > j.actAt):
	case every == 0 && at < j.status.Begun: // too late, as the status says
	case j.checkpointing == none, j.checkpointing == armed && at != j.armedAt:
		j.checkpointing, j.armedAt = armed, at
		m.emit(Output{Take: &Take{j.spec.Name, at}})
	}
}

// checkpointsSince returns JobStatus.Since for a new checkpoint, which was taken after some iterations.
func (j *job) checkpointsSince(iteration int) int {
	every, last := j.spec.Checkpoint.Iterations, j.status.Checkpoint
	if !j.isReplica() || every == 0 || last == nil || iteration != last.Iteration+every {
		return 0
	}
	return cmp.Or(j.status.Since, last.Iteration)
}

// handleBegun records that a replica has begun more iterations than those after which it was to rest or be
// checkpointed.
func (m *Machine) handleBegun(j *job, iterations int) {
	j.status.Begun, m.changed = max(j.status.Begun, iterations), true
	if j.parkSent && !j.resting && j.parkAt < iterations {
		j.parkSent = false
	}
	if j.checkpointing == armed && j.armedAt < iterations {
		j.checkpointing = none
	}
}
