package controller

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"tensile/controller/recovery"
	"tensile/graph/invariants"
	"tensile/wire"
)

// nextStates are the states that a job may enter from another, beside those in which it is over: any job may fail, or
// be stopped, at any time. The drawing in the package comment leaves out what happens when executors are lost.
var nextStates = map[wire.JobState][]wire.JobState{
	// it is admitted, or parked before that
	wire.JobQueued: {wire.JobStarting, wire.JobParking},
	// its executor has begun; it gives way before that; or its executor ends, is silent, or has it begun and ended
	// between two statuses
	wire.JobStarting: {wire.JobRunning, wire.JobQueued, wire.JobParking, wire.JobStopping, wire.JobUnknown,
		wire.JobFinished},
	wire.JobRunning: {wire.JobQueued, wire.JobParking, wire.JobStopping, wire.JobUnknown, wire.JobFinished},
	// its executor is heard of again, or has ended, or nobody waits for it any more
	wire.JobUnknown: {wire.JobStarting, wire.JobRunning, wire.JobQueued, wire.JobParking, wire.JobParked,
		wire.JobStopping, wire.JobFinished},
	// it has left the device, to rest or to wait for its turn; it is resumed before; or it ends before
	wire.JobParking: {wire.JobParking, wire.JobParked, wire.JobQueued, wire.JobStarting, wire.JobRunning,
		wire.JobStopping, wire.JobFinished},
	// it is resumed, or is to leave the host's memory
	wire.JobParked:   {wire.JobQueued, wire.JobParking, wire.JobStopping},
	wire.JobStopping: {wire.JobStopping, wire.JobFinished},
}

// mayEnter reports whether a job goes from one state to another.
func mayEnter(from, to wire.JobState) bool {
	return !from.Over() && (to == wire.JobFailed || to == wire.JobStopped || slices.Contains(nextStates[from], to))
}

// checkStates has a job panic that enters a state which it may not. Tests set it.
var checkStates = invariants.Enabled

// enter has the job enter a state, for a reason that people may read or "". Nothing else writes the state of a job that
// was submitted to this controller. What it waits for is not known yet.
func (j *job) enter(s wire.JobState, why string) {
	if checkStates && !mayEnter(j.record.State, s) {
		panic(fmt.Sprintf("controller: job %s is %s and enters %s", j.record.Spec.Name, j.record.State, s))
	}
	j.record.State, j.record.Reason, j.record.Wait = s, why, wire.Wait{}
}

// waitFor records what the job waits for, in words that people may read.
func (j *job) waitFor(w wire.Wait, why string) { j.record.Wait, j.record.Reason = w, why }

// announceWait is waitFor with an event, unless the same was said before.
func (m *Machine) announceWait(j *job, w wire.Wait, why string) {
	before := j.record.Reason
	if j.waitFor(w, why); why != before {
		m.changed = true
		m.tell(j, Event{Kind: Queued, Amounts: Amounts{Bytes: w.DeviceBytes()}, Reason: why})
	}
}

// tell emits an event of a job.
func (m *Machine) tell(j *job, e Event) {
	e.Job = j.record.Spec.Name
	m.emitEvent(e)
}

// isBlocked reports whether the job is known not to fit what there is: it waits for a larger budget, or for what
// executors out of reach have. Others may begin before it. It is blocked until there is more memory (unblock).
func (j *job) isBlocked() bool { return j.record.Wait.For == wire.WaitBudget && !j.unchecked }

// isThrottled reports whether the job does not begin because another tenant is owed time of its devices.
func (j *job) isThrottled() bool { return j.record.Wait.For == wire.WaitTenant }

// isPausing reports whether the job was taken from its executor and may not begin again yet.
func (m *Machine) isPausing(j *job) bool { return j.record.Wait.Until > m.now }

// carryOut does what becomes of a job and of its peers.
func (m *Machine) carryOut(j *job, o outcome) {
	switch o.action {
	case recovery.Stays:
	case recovery.Fails, recovery.Stops, recovery.Finishes:
		m.end(j, o)
	case recovery.Retries, recovery.Moves:
		if o.action == recovery.Retries {
			j.record.Restarts++
		}
		m.reassign(j, o.why)
	case recovery.Rests, recovery.Waits:
		m.rest(j, o)
	default:
		m.goOn(j, o)
	}
}

// end ends a job, and its peers.
func (m *Machine) end(j *job, o outcome) {
	switch g := m.gangOrSelf(j); {
	case o.said == nil && j.isReplica():
		m.keepReservation(j) // its executor may live although it is out of reach
	case o.action == recovery.Finishes && j.isReplica():
		for _, p := range g {
			m.endJob(p, wire.JobFinished, "", p.replica.finalStatus)
		}
		return
	case o.action == recovery.Stops && j.isReplica(): // its end is that of the others, too
		for _, p := range g {
			if p.replica.finalStatus.State == wire.Stopped {
				j, o.said = p, p.replica.finalStatus
			}
		}
	}
	m.endJob(j, endStates[o.action], o.why, o.said)
}

// endStates are the states of jobs that are over, by what becomes of them.
var endStates = map[recovery.Action]wire.JobState{recovery.Fails: wire.JobFailed, recovery.Stops: wire.JobStopped,
	recovery.Finishes: wire.JobFinished}

// rest takes jobs that train nowhere from their executors.
func (m *Machine) rest(j *job, o outcome) {
	unreachable := m.isUnreachable(j)
	g := m.detachAll(j)
	if o.action == recovery.Waits {
		if unreachable { // nobody planned for it
			m.retryAdmission(j.domain)
			j.waitFor(wire.Wait{}, fmt.Sprintf("goes on from iteration %d: %s", j.record.Iteration, o.why))
		}
		return
	}
	for _, p := range g {
		// A controller that was killed may have stored only some replicas as parked.
		if p.record.Park = wire.OnDisk; p.record.State != wire.JobParked {
			p.record.Preempted = j.record.Preempted
			m.recordParked(p)
		}
	}
}

// detachAll takes a job and its peers from their executors, which keep reservations of replicas.
func (m *Machine) detachAll(j *job) []*job {
	g := m.gang(j)
	if g == nil {
		m.detachJob(j)
		return []*job{j}
	}
	m.detachGang(g)
	return g
}

// goOn has a job, or all replicas of a gang, wait for its turn to go on from its newest checkpoint.
func (m *Machine) goOn(j *job, o outcome) {
	r := &j.record
	in, what := m.recoveryInputs(j), "goes on from iteration"
	if j.isReplica() {
		in, what = m.gangInputs(m.gang(j), j), "goes on with all replicas from iteration"
	}
	if o.action == recovery.Restarts || o.action == recovery.Shrinks {
		in.Restarts++
	}
	deadline := cmp.Or(j.checkpointDeadline, m.now+m.config.GiveUp)
	g := m.detachAll(j)
	line, wait := fmt.Sprintf("%s %d: %s", what, r.Iteration, o.why), wire.Wait{}
	e := Event{Kind: Restarted, Iterations: r.Iteration, Detail: o.why}
	switch {
	case o.action == recovery.Restarts:
		pause := recovery.Pause(in.Restarts)
		wait = wire.Wait{For: wire.WaitRestart, Until: m.now + pause}
		line = fmt.Sprintf("%s %d in %v (attempt %d of %d): %s", what, r.Iteration, pause, in.Restarts,
			in.RestartLimit(), o.why)
	case o.action == recovery.Requeues:
		line, e = o.why, Event{Kind: Reassigned, Detail: o.why}
	case o.action == recovery.Awaits && !j.isReplica():
		wait = wire.Wait{For: wire.WaitCheckpoint}
		line = fmt.Sprintf("waits for an executor that has its checkpoint %s, on %s", r.Checkpoint.File,
			r.Checkpoint.Host)
		e = Event{Kind: Queued, Reason: line}
	case o.action == recovery.Shrinks:
		m.shrinkBudget(j, *o.said.Free)
	}
	for _, p := range g {
		p.record.Restarts = in.Restarts
		m.requeueInPlace(p, line)
		p.record.Wait = cmp.Or(wait, p.record.Wait)
		m.tell(p, e)
	}
	if o.action == recovery.Awaits && !(j.isReplica() && m.otherExecutorMayTake(j)) {
		m.awaitCheckpoint(j, deadline, o.why)
	}
}

// awaitCheckpoint has a queued job wait for an executor that has its checkpoint, until a deadline.
func (m *Machine) awaitCheckpoint(j *job, deadline time.Duration, why string) {
	j.checkpointDeadline = deadline
	if !j.isReplica() {
		return
	}
	if c := j.record.Checkpoint; c != nil {
		why = fmt.Sprintf("waits for an executor that has its checkpoint after %d iterations, as on %s", j.record.From,
			c.Host)
	}
	j.waitFor(wire.Wait{For: wire.WaitCheckpoint}, why)
}

// reassign gives another executor to a job that has not begun.
func (m *Machine) reassign(j *job, why string) {
	m.dropDelivered(j, j.deliveredLayouts(), true)
	j.record.Executor, m.changed = "", true
	for _, l := range j.layouts {
		l.delivered = false
	}
	m.tell(j, Event{Kind: Reassigned, Detail: why})
}

// endJob ends a job with what its executor has said of its end; nil: nothing. The job's memory goes to those that wait,
// and then to the others.
func (m *Machine) endJob(j *job, state wire.JobState, why string, said *wire.JobStatus) {
	active := j.isActive()
	j.enter(state, why)
	j.record.Speed = 0
	m.dropDelivered(j, j.deliveredLayouts(), true)
	j.graph, j.policyReport, j.progress = nil, nil, progress{}
	j.jobLatencies, j.jobMemory = jobLatencies{}, jobMemory{}
	d := j.domain
	if d != nil {
		d.storeLearnt()
	}
	var result *wire.Result
	if said != nil {
		result, j.record.Diverged = said.Result, j.record.Diverged || state == wire.JobFailed && said.Diverged
	}
	m.collectResult(j, result)
	m.changed = true
	m.addCount(j, func(t *Counters) { t.countEnd(j.record.State) })
	m.tell(j, Event{Kind: Ended, Epoch: j.record.Applied, State: state,
		Iterations: j.record.Iteration, Detail: why})
	m.retryAdmission(d) // jobs behind it may fit now
	if active && (!m.config.NoReplan || d.isOverfull() || d.hasUnplannedJob()) {
		d.pending.replan = newReason(Departure, "job %s has gone", j.record.Spec.Name)
	}
	if state != wire.JobFinished {
		m.endPeers(j)
	}
}

// collectResult has the result of a job stored for good: the one that its executor has left or, if the executor was
// lost, what reports have told.
func (m *Machine) collectResult(j *job, result *wire.Result) {
	heard := j.losses.result()
	j.losses.values = nil
	c := Collection{FromReports: heard, Object: wire.ResultObject(j.record.Spec.Name, j.record.Spec.ID)}
	if result != nil {
		r := *result
		key := wire.ResultKey(j.record.Executor, j.record.Spec.ID, j.record.Incarnation)
		if r.Stored == key { // and no other executor's
			c.Key = key
		}
		r.Stored, r.Losses, r.Weights = "", nil, nil // these parts are in the stored result alone
		j.record.Result = &r
	} else if heard != nil {
		j.record.Result = &wire.Result{Last: heard.Last}
	}
	if c.Key != "" || heard != nil {
		j.record.Result.Stored = c.Object
		m.emit(Output{Result: &c})
	}
}

// enqueue has a job wait in the queue.
func (m *Machine) enqueue(j *job, why string) {
	j.enter(wire.JobQueued, why)
	j.record.Waiting = m.now
	// The budget may have become smaller since the job was admitted.
	j.unchecked, j.checkpointDeadline = true, 0
	if _, held := m.throttledFor(j); held {
		j.record.Wait.For = wire.WaitTenant // until settleAccounts sees that it is no more
	}
	m.changed = true
	m.retryAdmission(j.domain)
}

// requeueInPlace has a job wait again that did not leave its device for a queued job: it keeps its place before jobs
// that came later.
func (m *Machine) requeueInPlace(j *job, why string) {
	m.enqueue(j, why)
	j.record.Waiting = cmp.Or(j.record.Submitted, m.now)
}
