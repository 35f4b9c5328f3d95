package controller

import (
	"cmp"
	"slices"

	"tensile/controller/fleet"
	"tensile/controller/recovery"
	"tensile/graph"
	"tensile/wire"
)

// What becomes of a job that is over, or cannot go on where it is. Package recovery decides, and carryOut does it. All
// replicas of a gang have one outcome: part (d) of replicas.go.

// outcome is what becomes of a job and of its peers.
type outcome struct {
	action recovery.Action
	// why is the reason in words.
	why string
	// said is the status of the job's executor in which it says so. nil: its executor is lost, or a peer's.
	said *wire.JobStatus
}

// outcomeOf is what becomes of a job by what its executor says.
func (m *Machine) outcomeOf(j *job, s *wire.JobStatus) outcome {
	if j.isReplica() && (s.State != wire.Failed || s.Alone) {
		return m.gangOutcome(j, s)
	}
	o := outcome{why: s.Error, said: s}
	switch in := m.recoveryInputs(j); s.State {
	case wire.Finished:
		o.action, o.why = recovery.Finishes, ""
	case wire.Stopped:
		o.action, o.why = recovery.Stops, ""
	case wire.Suspended:
		o.action, o.why = in.ActionAfter(recovery.Left), cmp.Or(s.Error, "its executor has left")
		if s.Error != "" {
			o.action = in.ActionAfter(recovery.Broke)
		}
		if o.action == recovery.Stops {
			o.why = ""
		}
	case wire.Failed:
		return m.failure(j, in, o)
	}
	return o
}

// failure is what becomes of a job that its executor has given up. Another machine may have the files that one lacks
// whose executor was started by hand. A gang whose checkpoint is damaged begins from scratch, as there is no other that
// all replicas have.
func (m *Machine) failure(j *job, in *recovery.Job, o outcome) outcome {
	s, x := o.said, m.executors[j.record.Executor]
	gang := j.isReplica()
	switch {
	case gang && j.record.From > 0 && s.Damaged:
		for _, o := range m.gang(j) {
			o.record.From, o.record.Checkpoint, o.replica.checkpoints = 0, nil, nil
		}
		return m.restartOfGang(j, o.why, false)
	case gang && j.record.From > 0 && s.Lacks:
		j.failedAt = append(j.failedAt, x.Name)
		if o = m.restartOfGang(j, o.why, false); o.action == recovery.GoesOn {
			o.action = recovery.Awaits
		}
		return o
	case s.Lacks && in.HasCheckpoint && !gang:
		if in.State == wire.JobStarting {
			j.failedAt = append(j.failedAt, x.Name)
			in.ExecutorHere = j.domain.vacantExecutor(j, nil) != ""
			in.Elsewhere = len(m.domains) > 1 && len(m.candidateDevices(j)) > 0
		}
		o.action = in.ActionAfter(recovery.Lacks)
		return o
	}
	if s.Free != nil {
		o.action = in.ActionAfter(recovery.NoRoom)
	}
	if o.action != recovery.Shrinks {
		if x.Kind == fleet.ByHand {
			j.failedAt = append(j.failedAt, x.Name)
			in.Elsewhere = len(m.allowedDevices(j)) > 0
		}
		o.action = in.ActionAfter(recovery.Failed)
	}
	if gang && o.action != recovery.Fails {
		if j.record.Restarts++; o.action == recovery.Shrinks {
			m.shrinkBudget(j, *s.Free)
		}
		return m.restartOfGang(j, o.why, false)
	}
	return o
}

// recoveryInputs is what the recovery of a job depends on.
func (m *Machine) recoveryInputs(j *job) *recovery.Job {
	r := &j.record
	return &recovery.Job{State: r.State, Script: r.Spec.Script, Damaged: j.damage != "", Begun: r.Iteration > 0,
		HasCheckpoint: r.Checkpoint != nil, TakesCheckpoints: r.Spec.Checkpoint != wire.Interval{},
		IsNew: r.Applied == 0 && j.newestLayout() != nil, Restarts: r.Restarts, Limit: r.Spec.Restarts}
}

// gangInputs is what the recovery of a gang depends on when there is trouble with one of its replicas.
func (m *Machine) gangInputs(g []*job, j *job) *recovery.Job {
	in := m.recoveryInputs(j)
	in.IsGang, in.HasCheckpoint = true, newestCommonCheckpoint(g) > 0
	for _, o := range g {
		in.Begun = in.Begun || o.record.Iteration > 0 || o.record.Applied > 0
		in.Restarts = max(in.Restarts, o.record.Restarts)
		in.IsOver = in.IsOver || o.record.State.Over()
		if o.record.State == wire.JobStopping {
			in.State = wire.JobStopping
		}
	}
	return in
}

// gangOutcome is what becomes of a gang by what the executor of one of its replicas says, but for a failure of its own.
func (m *Machine) gangOutcome(j *job, s *wire.JobStatus) outcome {
	switch {
	case s.State == wire.Finished || s.State == wire.Stopped:
		return m.endOfGang(j)
	case s.State == wire.Suspended && !j.replica.leftExecutor:
		return m.restartOfGang(j, cmp.Or(s.Error, "its executor has left"), s.Error != "")
	case s.State == wire.Suspended:
		o := outcome{}
		if !slices.ContainsFunc(m.gang(j), func(o *job) bool { return !o.replica.leftExecutor }) {
			o.action = recovery.Rests
		}
		return o
	case s.State == wire.Failed:
		return m.disconnection(j, s.Error)
	}
	return m.disconnection(j, connectionBroke)
}

// connectionBroke is why a gang begins again of which no replica says another reason.
const connectionBroke = "the connection to another replica broke"

// endOfGang is what becomes of a gang of which one replica has finished or was stopped: it ends when all have.
func (m *Machine) endOfGang(j *job) outcome {
	o := outcome{action: recovery.Finishes, said: j.replica.finalStatus}
	for _, p := range m.gang(j) {
		switch {
		case p.record.State.Over():
		case p.replica.finalStatus == nil:
			return m.disconnection(j, connectionBroke)
		case p.replica.finalStatus.State == wire.Stopped:
			o.action = recovery.Stops
		}
	}
	return o
}

// disconnection restarts a gang when one of its replicas has failed only because a connection broke, and none trains
// any more. One that trains may yet say what the trouble was, unless its executor cannot be reached.
func (m *Machine) disconnection(j *job, why string) outcome {
	g := m.gang(j)
	trains := func(o *job) bool {
		return o.replica.running && !o.replica.disconnected && o.replica.finalStatus == nil && !m.isUnreachable(o)
	}
	if slices.ContainsFunc(g, func(o *job) bool { return o.replica.disconnected }) && !slices.ContainsFunc(g, trains) {
		return m.restartOfGang(j, why, true)
	}
	return outcome{}
}

// restartOfGang is what becomes of a gang because of some trouble with one of its replicas. counts says that a restart
// counts as one if they train.
func (m *Machine) restartOfGang(j *job, why string, counts bool) outcome {
	return outcome{action: m.gangInputs(m.gang(j), j).GangAction(counts), why: why}
}

// lose has a job go on as far as it may whose executor is lost.
func (m *Machine) lose(j *job, t recovery.Trouble, why string) {
	if j.isReplica() {
		m.carryOut(j, m.restartOfGang(j, why, true))
		return
	}
	m.carryOut(j, outcome{action: m.recoveryInputs(j).ActionAfter(t), why: why})
}

// shrinkBudget has all jobs planned for within what is really free, after a device had no room for the arena of a job:
// other programs have the rest.
func (m *Machine) shrinkBudget(j *job, free graph.Bytes) {
	d := j.domain
	room := max(1, d.takenBytes()+free)
	if j.isReplica() { // a replica has no arena any more
		room = max(1, d.totalClaims().Remove(j.claim()).Bytes()+d.contexts().Sum()+free)
	}
	if d.config.Budget == 0 || room < d.config.Budget {
		d.config.Budget = room
		d.replanForBudget()
	}
}
