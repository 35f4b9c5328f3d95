package agent

import (
	"errors"
	"fmt"

	"tensile/device"
	"tensile/executor"
	"tensile/executor/reduce"
	"tensile/graph/text"
	"tensile/models/task"
	"tensile/plan"
	"tensile/plan/program"
	"tensile/wire"
)

// job is what a machine knows about a job.
type job struct {
	// ticket tells the job apart from all others of this process.
	ticket Ticket
	// spec is what its owner wants.
	spec wire.Spec
	// incarnation is that of the assignment.
	incarnation int64
	// ordered says that the newest orders have the job. If not, it is to end and to be forgotten.
	ordered bool
	// epoch numbers the layout that it is to train with; 0: there is none yet.
	epoch int64
	// stop says that the orders have it end.
	stop bool
	// continuesElsewhere says that it goes on at another executor from its checkpoints, which stay therefore.
	continuesElsewhere bool
	// knownCheckpoint is how many iterations the newest checkpoint has that the controller knows of; 0: it knows none.
	knownCheckpoint int
	// park is where the orders have it rest; "": it is to train.
	park wire.Place
	// wantsCopies says that its reports have the time of each copy.
	wantsCopies bool
	// unplanned is why there is no plan for a script's graph; "": there is one, or it is being made.
	unplanned string
	// hostUnplanned is the value of unplanned that the host was told last.
	hostUnplanned string
	// trace is the newest trace that was ordered.
	trace wire.Trace
	// successor is another job of its name, or another incarnation, which begins when this one is gone; nil: there is
	// none.
	successor *wire.Assignment

	// task is the graph with its data; nil: it is not fetched yet.
	task *task.Task
	// stale says that the script has another graph than task since.
	stale bool
	// begin is the checkpoint that it goes on from; nil: it begins with no iteration.
	begin *Begin
	// fetching says that the task or a layout is being fetched.
	fetching bool
	// retryDue says that a fetch, a store or a save has failed and is tried again at the next heartbeat.
	retryDue bool
	// settledEpoch numbers the newest layout that the host was given or that was refused.
	settledEpoch int64

	// hosted says that the host has the job, or may have it.
	hosted bool
	// stopSent says that the host was told to stop it.
	stopSent bool
	// removeSent says that the host was told to remove it.
	removeSent bool
	// lingers says that the job has failed, while the host may have it train until it is removed.
	lingers bool
	// keeping says that the job has ended and that its result is being taken. It counts until its state is over.
	keeping bool
	// ending is, while keeping, what the host said of the end.
	ending *executor.Ended
	// unsaved is, while keeping, a result that could not be saved; nil: it was saved, or that was not tried yet.
	unsaved *Kept
	// keepSent says, while keeping, that the attempt to save is under way.
	keepSent bool
	// status is what the controller is told of the job.
	status wire.JobStatus
	// outcome is what the job has come to so far.
	outcome outcome
	// result is, once the job is over, its result with losses and weights, which is still to be stored; nil: it is
	// stored.
	result *wire.Result
	// storing says that this is under way.
	storing bool

	// parkSent says that the host was told to park the job and was not told to resume it since.
	parkSent bool
	// parkNumber is the number of the newest Park that the host was sent.
	parkNumber int64
	// resting says that the job is in Home since that Park. It counts while parkSent is set.
	resting bool
	// actAt is, for a replica, the number of complete iterations after which it parks, stops or takes a checkpoint as
	// ordered; 0: there is nothing to do.
	actAt int
	// neighbour is, for a replica, where the one before it listens, as ordered; nil: unknown.
	neighbour *wire.Meeting
	// joinSent is the neighbour that the replica was told.
	joinSent wire.Meeting
	// meetSent says that the replica was told to listen for the next one.
	meetSent bool
	// partSent says that the replica was told to close its connections.
	partSent bool
	// parkAt is actAt as it was when the host was told to park a replica. It counts while parkSent is set.
	parkAt int
	// armedAt is the number of complete iterations after which the host takes the state. It counts while checkpointing
	// is armed.
	armedAt int

	// checkpointing is how far the present checkpoint is.
	checkpointing checkpointStage
	// lastTry is when the newest checkpoint was begun.
	lastTry checkpointTry
	// checkpointError is why the newest checkpoint was not written, in a line; "": it was.
	checkpointError string
}

// isSameJob reports whether two specs are those of one job. They may differ in what only planners look at, and in what
// a script was seen to do.
func isSameJob(a, b wire.Spec) bool {
	a.Priority, a.SwapRate = b.Priority, b.SwapRate
	if a.Script && b.Script {
		a.Graph, a.Held, a.Least = b.Graph, b.Held, b.Least
	}
	return a == b
}

// advance takes every job as far as it can go now.
func (m *Machine) advance() {
	for i := 0; i < len(m.jobs); {
		j := m.jobs[i]
		m.advanceJob(j)
		if i < len(m.jobs) && m.jobs[i] == j { // it was not forgotten
			i++
		}
	}
}

// advanceJob takes a job as far as it can go now.
func (m *Machine) advanceJob(j *job) {
	over := j.status.State.Over()
	if over || !j.ordered {
		m.closeConnections(j)
	}
	if over && j.result != nil && !j.storing && !j.retryDue && m.online {
		j.storing = true
		m.emit(Output{Store: &Store{j.ticket, wire.ResultKey(m.process.Executor, j.spec.ID, j.incarnation), j.result}})
	}
	switch {
	case j.keeping:
		m.keepResult(j)
	case j.hosted && (over || !j.ordered):
		if !j.removeSent {
			j.removeSent = true
			m.emit(Output{Remove: j.spec.Name})
		}
	case j.checkpointing == writing && (over || !j.ordered):
	case !j.ordered:
		m.dropJob(j)
	case over:
	case j.isReplica():
		m.advanceReplica(j)
	case m.mustSuspend(j):
		m.suspend(j)
	case (j.stop || m.interruption != nil) && j.hosted:
		if !j.stopSent {
			j.stopSent = true
			m.emit(Output{Stop: j.spec.Name})
		}
	case j.stop:
		m.endJob(j, wire.Stopped, "before it began")
	case m.interruption != nil:
		m.interruptJob(j)
	case !j.hosted && j.park != "":
		m.setState(j, wire.Resting)
	case j.hosted:
		if j.unplanned != j.hostUnplanned {
			j.hostUnplanned = j.unplanned
			m.emit(Output{Unplanned: &Unplanned{j.spec.Name, j.unplanned}})
		}
		m.followParkOrder(j)
		m.takeCheckpoint(j)
		m.fetch(j)
	default:
		m.setState(j, wire.Waiting)
		m.fetch(j)
	}
}

// fetch fetches what a job is to train, and then the layout with which.
func (m *Machine) fetch(j *job) {
	switch {
	case j.fetching || j.retryDue:
	case j.task == nil || j.stale:
		j.fetching = true
		m.emit(Output{Prepare: &Prepare{j.ticket, j.spec, j.incarnation, j.knownCheckpoint, j.isReplica()}})
	case j.epoch > j.settledEpoch:
		j.fetching = true
		m.emit(Output{Fetch: &Fetch{j.ticket, j.spec.Name, j.spec.ID, j.epoch, *j.task,
			j.spec.Checkpoint != wire.Interval{}}})
	}
}

// setState records where a job is.
func (m *Machine) setState(j *job, s wire.State) {
	if j.status.State != s {
		j.status.State, m.changed = s, true
	}
}

// endJob ends a job in a state that is over. why may be empty.
func (m *Machine) endJob(j *job, s wire.State, why string) {
	m.endJobAs(j, Event{Kind: Over, State: s, Reason: why})
}

func (m *Machine) endJobAs(j *job, e Event) {
	j.status.State, j.status.Arena, m.changed = e.State, 0, true
	e.Job, e.Iterations = j.spec.Name, j.status.Iteration
	if e.State == wire.Suspended && j.status.Checkpoint != nil {
		e.File = j.status.Checkpoint.File
	}
	if j.status.Result != nil {
		e.Saved = j.status.Result.Saved
	}
	m.emitEvent(e)
	if m.interruption != nil {
		m.account = append(m.account, e.Notice())
	}
}

func (m *Machine) fail(j *job, err error) {
	j.status.Error = errorLine(err)
	_, j.status.Diverged = errors.AsType[*task.DivergedError](err)
	m.endJob(j, wire.Failed, j.status.Error)
}

// failHosted fails a job that the host has. The status says so only when the host has removed the job, because until
// then it may have its arena.
func (m *Machine) failHosted(j *job, err error) {
	j.lingers = true
	m.fail(j, err)
}

// interruptJob ends a job that was not over when the process was interrupted. To its owner it has failed.
func (m *Machine) interruptJob(j *job) {
	e := Event{Kind: Interrupted, State: wire.Failed}
	how := "not saved"
	switch r := j.status.Result; {
	case j.spec.Script:
		how, e.Reason = "and its script told to end", "its script was told to end"
	case r != nil && r.Saved != "":
		how = "saved in " + r.Saved
	}
	j.status.Error = errorLine(fmt.Errorf("%w, %s", m.interruption, how))
	m.endJobAs(j, e)
}

// reportTrouble records an error that the job survives.
func (m *Machine) reportTrouble(j *job, err error) {
	if why := errorLine(err); why != j.status.Error {
		j.status.Error, m.changed = why, true
		m.emitEvent(Event{Kind: Troubled, Job: j.spec.Name, Reason: why})
	}
}

// takeWaiting returns the job for which something was fetched, which waits for nothing then; nil: the job has no use
// for it any more.
func (m *Machine) takeWaiting(t Ticket) *job {
	j := m.findBy(func(j *job) bool { return j.ticket == t })
	if j == nil {
		return nil
	}
	if j.fetching = false; j.status.State.Over() || !j.ordered || j.stop && !j.isReplica() || m.interruption != nil {
		return nil
	}
	return j
}

func (m *Machine) handlePrepared(p *Prepared) {
	switch j := m.takeWaiting(p.Ticket); {
	case j == nil:
	case p.Err == nil && j.spec.Script && p.Graph != j.spec.Graph: // the script does something else by now
	case p.Err == nil:
		j.task, j.begin, j.stale = &p.Task, p.Begin, false
		j.status.Error = ""
		m.noteBegin(j, p.Notes)
	case p.Again:
		j.retryDue = true
		m.reportTrouble(j, p.Err)
	default:
		_, j.status.Lacks = errors.AsType[lackingError](p.Err)
		_, j.status.Damaged = errors.AsType[damagedError](p.Err)
		m.fail(j, p.Err)
	}
}

// handleFetched hands a layout to the host, unless a newer one was ordered meanwhile.
func (m *Machine) handleFetched(f *Fetched) {
	j := m.takeWaiting(f.Ticket)
	if j == nil || f.Epoch != j.epoch || !j.hosted && j.park != "" && !j.isReplica() {
		return
	}
	switch {
	case f.Err != nil && f.Again:
		j.retryDue = true
		m.reportTrouble(j, fmt.Errorf("layout %d: %w", f.Epoch, f.Err))
		return
	case f.Err != nil && j.parkSent: // it must not go on with the layout before
		m.failHosted(j, fmt.Errorf("layout %d is refused: %w", f.Epoch, f.Err))
	case f.Err != nil:
		m.reportTrouble(j, fmt.Errorf("layout %d is refused: %w", f.Epoch, f.Err))
	case j.hosted:
		j.outcome.recordPlan(f)
		m.emit(Output{Change: &Change{j.spec.Name, f.Proven}})
	default:
		j.outcome.recordPlan(f)
		j.hosted, j.lastTry.iteration = true, j.status.Iteration
		every := 0
		if j.isReplica() {
			every = j.spec.Checkpoint.Iterations
		}
		m.emit(Output{Open: &Open{j.ticket, j.spec, *j.task, j.begin, every, f.Proven}})
		if j.trace.Number > 0 {
			m.emit(Output{Trace: &Trace{j.spec.Name, j.trace.Iterations}})
		}
	}
	j.settledEpoch = f.Epoch
}

// handleHostEvent handles what the host has observed.
func (m *Machine) handleHostEvent(e *executor.Event, loss *wire.Loss) {
	j := m.find(e.Job)
	if j == nil || !j.hosted {
		return
	}
	switch {
	case e.Report != nil:
		m.handleIteration(j, e.Report, loss)
	case e.Applied != nil:
		m.handleApplied(j, e.Applied)
	case e.Home:
		j.status.Arena, m.changed = 0, true
	case e.Begun != 0:
		m.handleBegun(j, e.Begun)
	case e.Parked != 0:
		m.handleParked(j, e.Parked)
	case e.Snapshot != nil:
		m.handleSnapshot(j, e.Snapshot)
	case e.Troubled != nil:
		m.reportTrouble(j, e.Troubled)
	case e.Note != "":
		m.emitEvent(Event{Kind: Noted, Job: j.spec.Name, Reason: e.Note})
	case e.Refused != nil && !j.status.State.Over() && !j.spec.Script && (j.parkSent ||
		j.status.State == wire.Waiting && j.status.Epoch > 0):
		m.failHosted(j, e.Refused) // it must not go on with the layout before; a script has none that was taken from it
	case e.Refused != nil && !j.status.State.Over():
		m.reportTrouble(j, e.Refused)
	case e.Ended != nil:
		m.handleEnded(j, e.Ended)
	case e.Removed:
		if !j.status.State.Over() {
			m.emitEvent(Event{Kind: Dropped, Job: j.spec.Name, Iterations: j.status.Iteration})
		}
		j.hosted, m.changed = false, true
	}
}

func (m *Machine) handleIteration(j *job, r *executor.Report, loss *wire.Loss) {
	j.status.Iteration = r.Iteration + 1
	if r.Script != nil {
		if r.Script.Loss != nil {
			told := wire.Loss(*r.Script.Loss)
			loss = &told
		}
		now := wire.Allocated{Plan: r.Script.Plan, Reserve: r.Script.Reserve, Touched: r.Touched,
			Hooks: r.Script.Hooks}
		m.changed = m.changed || j.status.Script == nil || now.Reserve > j.status.Script.Reserve
		j.status.Script = &now
	}
	if j.outcome.recordIteration(r, m.now) || r.Iteration+1 == j.spec.Iterations {
		j.outcome.logged = m.now
		m.emitEvent(Event{Kind: Iterated, Job: j.spec.Name, Epoch: r.Epoch, Iterations: r.Iteration,
			Iteration: Iteration{Took: r.End - r.Begin, Stall: r.Stall, Gate: r.Gate, Loss: loss}})
	}
	if m.online {
		m.emit(Output{Report: &wire.Report{Executor: m.process.Executor, Job: j.spec.Name, ID: j.spec.ID,
			Incarnation: j.incarnation, Epoch: r.Epoch, Iteration: r.Iteration, Steps: r.Steps, Stall: r.Stall,
			Gate: r.Gate, Wall: r.End - r.Begin, Touched: r.Touched,
			Loss: loss, Copies: j.copiesOf(r)}})
	}
}

// copiesOf returns the copies of an iteration; nil if the orders do not ask for them.
func (j *job) copiesOf(r *executor.Report) []wire.Copy {
	if !j.wantsCopies {
		return nil
	}
	copies := make([]wire.Copy, len(r.Copies))
	for i, c := range r.Copies {
		kind := plan.Out
		if c.Kind == program.In {
			kind = plan.In
		}
		start := max(0, c.Start-r.Begin) // one of the iteration before may have begun early
		copies[i] = wire.Copy{Kind: kind, Storage: c.Storage, After: c.Slot, Start: start,
			End: max(start, c.End-r.Begin), Stall: c.Stall}
	}
	return copies
}

func (m *Machine) handleApplied(j *job, a *executor.Applied) {
	j.outcome.recordApplied(a)
	event := Event{Kind: Applied, Job: j.spec.Name, Epoch: a.Epoch, Arena: a.Arena}
	if j.status.Epoch == 0 {
		event.Iterations, event.Model, event.Done = j.spec.Iterations, j.spec.Model, j.status.Iteration
		j.lastTry.at = m.now
	}
	m.emitEvent(event)
	j.status.State, j.status.Epoch, j.status.Arena, m.changed = wire.Running, a.Epoch, a.Arena, true
	if a.Epoch == j.settledEpoch { // no newer one was refused
		j.status.Error = ""
	}
}

// handleEnded begins to take the result of a job that has ended, unless nobody wants it.
func (m *Machine) handleEnded(j *job, e *executor.Ended) {
	j.status.Iteration, j.status.Arena, m.changed = max(j.status.Iteration, e.Iterations), 0, true
	j.outcome.plans, j.outcome.transition, j.outcome.touched = e.Plans, e.Transition, e.Touched
	switch {
	case e.Err != nil:
		if full, ok := errors.AsType[*device.OutOfMemoryError](e.Err); ok {
			j.status.Free = &full.Free
		}
		_, j.status.Alone = errors.AsType[*reduce.LostError](e.Err)
		m.fail(j, e.Err)
	case j.ordered && !j.removeSent:
		j.keeping, j.ending = true, e
	}
}

// keepResult takes the result of a job when no checkpoint of it is being written. While the result is on no disk, each
// heartbeat tries again. A job that must end at once, or that nobody wants, ends without its result on disk.
func (m *Machine) keepResult(j *job) {
	switch {
	case j.keepSent || j.checkpointing == writing || j.status.State.Over():
	case j.unsaved != nil && (j.stop || m.interruption != nil || !j.ordered):
		m.finishJob(j, j.unsaved)
		m.advanceJob(j)
	case j.unsaved == nil || !j.retryDue:
		j.keepSent = true
		m.emit(Output{Keep: &Keep{j.ticket, j.spec, j.incarnation, *j.task, j.ending}})
	}
}

func (m *Machine) handleKept(k *Kept) {
	j := m.findBy(func(j *job) bool { return j.ticket == k.Ticket })
	if j == nil || !j.keeping {
		return
	}
	if k.Again && !j.stop && m.interruption == nil {
		j.unsaved, j.keepSent, j.retryDue = k, false, true
		m.reportTrouble(j, fmt.Errorf("%w; it is tried again until that works, or the job is stopped", k.Err))
		return
	}
	m.finishJob(j, k)
}

// finishJob ends a job with its result.
func (m *Machine) finishJob(j *job, k *Kept) {
	if j.unsaved != nil {
		j.retryDue, j.status.Error = false, ""
	}
	j.keeping, j.ending, j.unsaved, j.keepSent = false, nil, nil, false
	j.status.Result, j.result = j.outcome.result(k, m.process.Origin)
	if k.Checkpoint != nil {
		j.status.Checkpoint = k.Checkpoint
		m.emitEvent(Event{Kind: Checkpointed, Job: j.spec.Name, Iterations: k.Checkpoint.Iteration,
			File: k.Checkpoint.File})
	}
	switch {
	case k.Err != nil:
		m.fail(j, k.Err)
	case j.spec.Script && !j.stopSent || !j.spec.Script && j.status.Iteration >= j.spec.Iterations:
		m.endJob(j, wire.Finished, "")
	case m.interruption != nil && !j.stop:
		m.interruptJob(j)
	default:
		m.endJob(j, wire.Stopped, "")
	}
}

// handleStored lets the next status say that a job is over, now that its result is stored.
func (m *Machine) handleStored(s *Stored) {
	j := m.findBy(func(j *job) bool { return j.ticket == s.Ticket })
	if j == nil || !j.storing {
		return
	}
	if j.storing = false; s.Err != nil {
		j.retryDue = true
		return
	}
	j.status.Result.Stored, j.result, m.changed = wire.ResultKey(m.process.Executor, j.spec.ID, j.incarnation), nil,
		true
}

// reportedStatus returns what a status says of a job. It says that the job is over only when its result is stored and
// the host has removed it, and that the job has failed only when no checkpoint is being written, which would be its
// newest.
func (j *job) reportedStatus() wire.JobStatus {
	s := j.status
	if s.Error == "" && !s.State.Over() {
		s.Error = j.checkpointError
	}
	if j.isReplica() {
		s.Begun = max(s.Begun, s.Iteration)
	}
	switch {
	case j.result != nil, j.lingers && j.hosted, s.State == wire.Failed && j.checkpointing == writing:
		s.State, s.Error, s.Result, s.Alone = wire.Running, "", nil, false
	case s.State == wire.Suspended && j.hosted:
		s.State = wire.Resting // it has its host slots still
	}
	return s
}

// errorLine returns the text of an error as a line for a status.
func errorLine(err error) string { return text.Line(err.Error(), 500) }
