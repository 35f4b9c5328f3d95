package agent

import (
	"math"
	"time"

	"tensile/executor"
	"tensile/wire"
)

// checkpointStage is how far a checkpoint is.
type checkpointStage int

const (
	none checkpointStage = iota
	// the host was told to take the state of the job after some iterations that are still to come
	armed
	asked   // the host was told to take the state of the job
	writing // the file is being written
)

// checkpointTry is when a checkpoint was begun.
type checkpointTry struct {
	// at is the time, by the machine's clock.
	at time.Duration
	// iteration is how many iterations were complete.
	iteration int
	// retryDue says that there was a heartbeat since then.
	retryDue bool
	// final says that the checkpoint failed and the process is to end, so that none is tried again.
	final bool
}

// takesCheckpoints reports whether checkpoints are taken of a job while it trains, so that it can go on elsewhere.
func (j *job) takesCheckpoints() bool { return j.spec.Checkpoint != wire.Interval{} }

// checkpointDue reports whether it is time for the next checkpoint.
func (j *job) checkpointDue(now time.Duration) bool {
	every, trained := j.spec.Checkpoint, j.status.Iteration-j.lastTry.iteration
	return trained > 0 && j.status.Iteration < j.spec.Iterations &&
		(every.Every > 0 && now-j.lastTry.at >= every.Every || every.Iterations > 0 && trained >= every.Iterations)
}

// noteBegin notes where a job begins, and what its owner wants to know of that.
func (m *Machine) noteBegin(j *job, notes []string) {
	for _, why := range notes {
		m.emitEvent(Event{Kind: Noted, Job: j.spec.Name, Reason: why})
	}
	if b := j.begin; b != nil {
		j.status.Iteration, j.status.Checkpoint, m.changed = b.Iteration, b.Checkpoint, true
		m.emitEvent(Event{Kind: Resumed, Job: j.spec.Name, Iterations: b.Iteration, File: b.File})
	}
}

// takeCheckpoint has a checkpoint taken of a job that trains if it is time for one.
func (m *Machine) takeCheckpoint(j *job) {
	if j.status.State == wire.Running && !j.parkSent && j.checkpointing == none && j.checkpointDue(m.now) {
		m.askForState(j)
	}
}

// askForState has the host take the state of a job.
func (m *Machine) askForState(j *job) {
	j.checkpointing, j.lastTry = asked, checkpointTry{at: m.now, iteration: j.status.Iteration}
	m.emit(Output{Take: &Take{Job: j.spec.Name}})
}

// handleSnapshot has a state written that is still wanted: not that of a job which ends, but for one that goes on
// elsewhere.
func (m *Machine) handleSnapshot(j *job, s *executor.Snapshot) {
	if s.Err != nil && j.checkpointing == armed {
		j.lastTry.iteration = j.armedAt
	}
	if j.checkpointing = none; s.Err != nil && !j.status.State.Over() {
		m.noteMissedCheckpoint(j, s.Err)
	}
	if s.Err != nil || !j.ordered || j.stop || j.stopSent || j.status.State.Over() || s.Iteration >= j.spec.Iterations {
		return
	}
	// a simulated host tells nothing of the iterations that it skips
	j.status.Iteration = max(j.status.Iteration, s.Iteration)
	j.checkpointing, j.lastTry.iteration = writing, s.Iteration
	keep := math.MaxInt
	if j.isReplica() {
		keep = j.knownCheckpoint
	}
	m.emit(Output{Write: &Write{j.ticket, j.spec, j.incarnation, *j.task, s, keep}})
}

// handleWritten notes a checkpoint, or that there is none: the job goes on, and the next one is tried in its turn.
func (m *Machine) handleWritten(w *Written) {
	j := m.findBy(func(j *job) bool { return j.ticket == w.Ticket })
	if j == nil || j.checkpointing != writing {
		return
	}
	j.checkpointing, j.checkpointError, m.changed = none, "", true
	if w.Err != nil {
		m.noteMissedCheckpoint(j, w.Err)
		return
	}
	j.status.Since = j.checkpointsSince(w.Checkpoint.Iteration)
	j.status.Checkpoint = w.Checkpoint
	m.emitEvent(Event{Kind: Checkpointed, Job: j.spec.Name, Iterations: w.Checkpoint.Iteration,
		File: w.Checkpoint.File})
}

// noteMissedCheckpoint notes that a checkpoint could not be taken.
func (m *Machine) noteMissedCheckpoint(j *job, err error) {
	j.checkpointError, j.lastTry.final, m.changed = errorLine(err), m.interruption != nil, true
	m.emitEvent(Event{Kind: Troubled, Job: j.spec.Name, Reason: j.checkpointError})
}

// followParkOrder has a job rest in Home, or go on, as it was ordered. It goes on with the layout that was ordered with
// that: the memory of the one before may be another job's by now.
func (m *Machine) followParkOrder(j *job) {
	switch {
	case j.park != "" && !j.parkSent:
		m.park(j)
	case j.park == "" && j.parkSent && j.settledEpoch == j.epoch:
		if j.parkSent, j.resting = false, false; j.status.State == wire.Resting {
			m.setState(j, wire.Waiting) // for the arena
		}
		m.emit(Output{Resume: j.spec.Name})
	}
}

// park has the host park a job. One that leaves has a checkpoint written then: that an earlier one was not counts for
// nothing.
func (m *Machine) park(j *job) {
	j.parkNumber++
	if j.parkSent, j.resting = true, false; m.mustSuspend(j) {
		j.checkpointError = ""
	}
	m.emit(Output{Park: &Park{j.spec.Name, j.parkNumber, j.parkAt}})
}

// handleParked notes that a job rests in Home, as it was told by the Park of a number. It may have been resumed since.
func (m *Machine) handleParked(j *job, number int64) {
	if j.parkSent && number == j.parkNumber && !j.status.State.Over() {
		j.resting, j.status.Arena = true, 0
		m.setState(j, wire.Resting)
		m.emitEvent(Event{Kind: Rested, Job: j.spec.Name, Iterations: j.status.Iteration})
	}
}

// mustSuspend reports whether a job is to leave this process and go on from its checkpoint some day.
func (m *Machine) mustSuspend(j *job) bool {
	return !j.stop && (j.park == wire.OnDisk || m.interruption != nil && j.takesCheckpoints())
}

// suspend has a job leave: it goes Home, and its state to a checkpoint unless there is one of it. Where that fails it
// rests, and it is tried again at the next heartbeat; a process that is to end leaves all the same, and the job goes on
// from the checkpoint before.
func (m *Machine) suspend(j *job) {
	c := j.status.Checkpoint
	switch {
	case !j.hosted:
		m.endJob(j, wire.Suspended, "")
	case !j.parkSent:
		m.park(j)
	case !j.resting || j.checkpointing == asked || j.checkpointing == writing:
	case j.checkpointing == armed && j.armedAt == j.status.Iteration: // the host takes it here
	case c != nil && c.Iteration == j.status.Iteration || j.status.Iteration == 0:
		m.endJob(j, wire.Suspended, "")
	case j.lastTry.final:
		j.status.Error = j.checkpointError
		m.endJob(j, wire.Suspended, j.checkpointError)
	case j.checkpointError == "" || j.lastTry.retryDue:
		m.askForState(j)
	}
}

// discard has the checkpoints of a job removed that is over for good: it has finished or was stopped. Those of one that
// failed stay, for whoever wants to go on from them.
func (m *Machine) discard(j *job) {
	well := j.status.State == wire.Finished || j.status.State == wire.Stopped
	follows := j.successor != nil && j.successor.Spec.ID == j.spec.ID
	if well && !j.continuesElsewhere && !follows && (j.takesCheckpoints() || j.status.Checkpoint != nil) {
		m.emit(Output{Discard: &Discard{j.spec.Name, j.spec.ID, j.incarnation}})
	}
}
