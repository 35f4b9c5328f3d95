package controller

import (
	"slices"

	"tensile/controller/gang"
	"tensile/wire"
)

// What an executor says of a job: what has come to pass is recorded, and then follows what becomes of the job.

// applyJobStatus takes over what an executor says of a job. answers says that the status answers the executor's newest
// orders.
func (m *Machine) applyJobStatus(j *job, s wire.JobStatus, answers bool) {
	m.recordProgress(j, &s, answers)
	m.carryOut(j, m.outcomeOf(j, &s))
	rests := s.State == wire.Resting && j.record.State == wire.JobParking && !j.isReplica() && answers
	switch {
	case s.State == wire.Running:
		m.recordTraining(j)
		if (s.Error != "" || j.record.State == wire.JobRunning) && s.Error != j.record.Reason {
			if j.record.Reason, m.changed = s.Error, true; s.Error != "" {
				m.tell(j, Event{Kind: Troubled, Detail: s.Error})
			}
		}
	case rests && j.record.Target != "" && s.Error != "":
		m.stayOnDevice(j, s.Error) // the checkpoint could not be written
	case rests && j.record.Park == wire.InMemory && s.Arena == 0:
		m.recordParked(j)
	}
}

// recordProgress records how far a job is.
func (m *Machine) recordProgress(j *job, s *wire.JobStatus, answers bool) {
	if !j.record.Spec.Script {
		s.Iteration = min(s.Iteration, j.record.Spec.Iterations)
	}
	m.recordAllocated(j, s.Script)
	if j.record.Iteration = max(j.record.Iteration, s.Iteration); s.State == wire.Running &&
		j.record.State == wire.JobStarting {
		j.record.Iteration = s.Iteration // it may have begun at a checkpoint before the known one
	}
	m.recordCheckpoint(j, s.Checkpoint)
	if j.isReplica() {
		m.recordKeptCheckpoint(j, s)
		m.recordReplica(j, s, answers)
	}
	if s.Epoch > j.record.Applied && j.mayApply(s.Epoch) {
		m.dropDelivered(j, j.recordApplied(s.Epoch), false)
		m.changed = true
	}
	there := s.State == wire.Waiting && j.record.State == wire.JobStarting
	if j.prepared != there {
		j.prepared, m.changed = there, true
	}
}

// recordAllocated records what the allocator of a script has. If that is more than plans reckoned with, all jobs are
// planned for again.
func (m *Machine) recordAllocated(j *job, a *wire.Allocated) {
	if a == nil || !j.record.Spec.Script {
		return
	}
	before, claim, d := j.allocatorReserve(), j.claim(), j.domain
	m.changed = m.changed || j.record.Script == nil || before != a.Reserve
	j.record.Script = a
	m.changed = m.changed || j.claim() != claim
	if j.allocatorReserve() > before && d.isOverfull() {
		d.pending.mandatory, d.pending.replan = true, newReason(Memory,
			"the allocator of job %s has %s beyond its plan",
			j.record.Spec.Name, a.Reserve)
	}
}

// recordApplied records that the layout of an epoch is in force, and forgets older ones. It returns those that nobody
// needs any more.
func (j *job) recordApplied(epoch int64) (useless []*layout) {
	was := j.record.Applied
	j.record.Applied, j.record.Plans = epoch, j.record.Plans+1
	if j.formerLayout != nil {
		useless = append(useless, j.formerLayout)
		j.formerLayout = nil
	}
	j.layouts = slices.DeleteFunc(j.layouts, func(l *layout) bool {
		switch {
		case l.Epoch() >= epoch:
			return false
		case l.Epoch() == was:
			j.formerLayout = l
		default:
			useless = append(useless, l)
		}
		return true
	})
	if at := slices.IndexFunc(j.layouts, func(l *layout) bool { return l.Epoch() == epoch }); at >= 0 {
		j.record.Arena, j.record.SlotPeak = j.layouts[at].Wire.Arena, j.layouts[at].Peak
	}
	return useless
}

// recordCheckpoint records the newest checkpoint of a job's present incarnation. It is a progress if it is newer than
// the one before.
func (m *Machine) recordCheckpoint(j *job, c *wire.Checkpoint) {
	old := j.record.Checkpoint
	if c == nil || c.Iteration > j.record.Spec.Iterations || old != nil && *old == *c {
		return
	}
	if !j.isReplica() && (old == nil || c.Iteration > old.Iteration) {
		j.record.Restarts = 0
	}
	if j.pinned && (old == nil || c.Iteration > old.Iteration) {
		j.pinned = false
		m.wakeMigrations()
	}
	j.record.Checkpoint, m.changed = c, true
}

// recordTraining records that a job trains.
func (m *Machine) recordTraining(j *job) {
	if j.record.State == wire.JobStarting {
		j.enter(wire.JobRunning, "")
		j.trainingSince, j.checkpointDeadline, m.changed = m.now, 0, true
	}
}

// recordReplica records what an executor says of a replica.
func (m *Machine) recordReplica(j *job, s *wire.JobStatus, answers bool) {
	k := &j.replica
	k.iterationsBegun = max(k.iterationsBegun, min(s.Begun, j.record.Spec.Iterations), s.Iteration)
	if s.Meets != nil && (k.meeting == nil || *k.meeting != *s.Meets) {
		k.meeting, m.changed = s.Meets, true
	}
	k.running = s.State == wire.Running || s.State == wire.Waiting && j.record.Park == ""
	switch s.State {
	case wire.Finished, wire.Stopped:
		told := *s
		k.finalStatus = &told
	case wire.Suspended:
		written := s.Checkpoint != nil && s.Checkpoint.Iteration == j.record.At
		k.leftExecutor = j.record.State == wire.JobParking && j.record.Park == wire.OnDisk &&
			(written || m.isGangAtRest(j))
	case wire.Failed:
		if k.disconnected = k.disconnected || s.Alone; s.Alone && j.record.Reason != s.Error {
			j.record.Reason, m.changed = s.Error, true
		}
	default:
		m.recordRest(j, s, answers)
	}
}

// recordRest records whether a replica rests as it was told. When all do, they are parked, or told to leave or to end.
// Record.At is raised for all if one of them has begun too many iterations when it hears of it, also where it was to
// take a checkpoint then.
func (m *Machine) recordRest(j *job, s *wire.JobStatus, answers bool) {
	resting := j.record.State == wire.JobParking || j.record.State == wire.JobStopping
	rests := j.restsInMemory() || resting
	switch at := j.record.At; {
	case !answers:
		return
	case j.canChangePlan() && at > 0 && s.Iteration <= at && min(s.Begun, j.record.Spec.Iterations) > at &&
		!j.replica.checkpoints.Contains(at, j.record.Spec.Checkpoint.Iterations):
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
	case j.record.State == wire.JobParking && j.record.Park == wire.InMemory:
		for _, o := range g {
			m.recordParked(o)
		}
	default:
		m.changed = true // so that orders tell them to leave, or to end
	}
}

// recordKeptCheckpoint records which checkpoints a replica has. A new one that all replicas have is a progress, and
// older ones are of no use.
func (m *Machine) recordKeptCheckpoint(j *job, s *wire.JobStatus) {
	c, k := s.Checkpoint, &j.replica
	if c == nil || c.Iteration <= j.record.From || c.Iteration > j.record.Spec.Iterations {
		return
	}
	r := gang.Run{From: c.Iteration, To: c.Iteration}
	if j.record.Spec.Checkpoint.Iterations > 0 && s.Since > 0 {
		r.From = min(s.Since, r.To)
	}
	if slices.Contains(k.checkpoints, r) {
		return
	}
	k.checkpoints = k.checkpoints.Add(r)
	g := m.gang(j)
	common := newestCommonCheckpoint(g)
	if common == j.record.From {
		return
	}
	for _, o := range g {
		o.record.From, o.record.Restarts = common, 0
		o.replica.checkpoints = o.replica.checkpoints.Trim(common)
		if o.canChangePlan() && o.record.At > 0 && common >= o.record.At {
			o.record.At, o.replica.margin = 0, 0 // this was the checkpoint to take
		}
	}
	m.changed = true
}
