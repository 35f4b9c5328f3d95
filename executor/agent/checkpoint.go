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

// noteBegin records where a job begins, and logs what its owner wants to know of that.
func (m *Machine) noteBegin(j *job, notes []string) {
	for _, why := range notes {
		m.emitEvent(Event{Kind: Noted, Job: j.spec.Name, Reason: why})
	}
	if b := j.begin; b != nil {
		j.status.Iteration, j.status.Checkpoint, m.changed = b.Iteration, b.Checkpoint, true
		m.emitEvent(Event{Kind: Resumed, Job: j.spec.Name, Iterations: b.Iteration, File: b.File})
	}
}

// takeCheckpoint asks for a checkpoint of a running job if it is time for one.
func (m *Machine) takeCheckpoint(j *job) {
	if j.status.State == wire.Running && !j.parkSent && j.checkpointing == none && j.checkpointDue(m.now) {
		m.askForState(j)
	}
}

// askForState tells the host to take the state of a job.
func (m *Machine) askForState(j *job) {
	j.checkpointing, j.lastTry = asked, checkpointTry{at: m.now, iteration: j.status.Iteration}
	m.emit(Output{Take: &Take{Job: j.spec.Name}})
}

// handleSnapshot has a state written if it is still wanted. The state of a job that is ending is not, and that of a job
// that continues elsewhere is.
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

// handleWritten records a new checkpoint, or that writing it failed. After a failure the job goes on, and the next
// checkpoint is taken when it is due.
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

// noteMissedCheckpoint records why a checkpoint could not be taken.
func (m *Machine) noteMissedCheckpoint(j *job, err error) {
	j.checkpointError, j.lastTry.final, m.changed = errorLine(err), m.interruption != nil, true
	m.emitEvent(Event{Kind: Troubled, Job: j.spec.Name, Reason: j.checkpointError})
}

// followParkOrder parks or resumes a job as ordered. A job resumes only with the layout that came with the order,
// because the memory of the layout before may belong to another job by now.
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

// park tells the host to park a job. If the job is to leave, a checkpoint is written next, and an earlier failure to
// write one is forgotten.
func (m *Machine) park(j *job) {
	j.parkNumber++
	if j.parkSent, j.resting = true, false; m.mustSuspend(j) {
		j.checkpointError = ""
	}
	m.emit(Output{Park: &Park{j.spec.Name, j.parkNumber, j.parkAt}})
}

// handleParked records that a job rests in Home, as the Park of a number told it. The job may have been resumed since.
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

// suspend makes a job leave: it goes Home, and its state is written to a checkpoint unless there is one of it. If
// writing fails the job rests, and the next heartbeat tries again. A process that is to end leaves all the same, and
// the job goes on from the checkpoint before.
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

// discard has the checkpoints of a job removed that has finished or was stopped. Checkpoints of a failed job stay, so
// that its owner can go on from them.
func (m *Machine) discard(j *job) {
	well := j.status.State == wire.Finished || j.status.State == wire.Stopped
	follows := j.successor != nil && j.successor.Spec.ID == j.spec.ID
	if well && !j.continuesElsewhere && !follows && (j.takesCheckpoints() || j.status.Checkpoint != nil) {
		m.emit(Output{Discard: &Discard{j.spec.Name, j.spec.ID, j.incarnation}})
	}
}
