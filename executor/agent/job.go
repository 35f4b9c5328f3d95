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
	ticket Ticket
	spec   wire.Spec
	number int64 // of the incarnation
	named  bool  // by the newest orders
	epoch  int64 // that it is to train with
	stop   bool  // ordered
	// it goes on elsewhere, from its checkpoints
	elsewhere bool
	from      int              // iterations of the newest checkpoint that the controller knows of
	park      wire.Place       // ordered: where it is to rest; "": it is to train
	copies    bool             // ordered: reports say what each copy took
	unplanned string           // why there is no plan for a script's graph; "": there is, or will be
	known     string           // of that, the host was told
	trace     wire.Trace       // the newest that was ordered
	next      *wire.Assignment // of another job of its name, which begins when this one is gone

	task    *task.Task // nil: not there yet
	stale   bool       // the task is not of the spec's graph, which is a script's newest
	begin   *Begin     // nil: with no iteration
	busy    bool       // something is being fetched for it
	again   bool       // that failed, and is tried again at the next heartbeat
	settled int64      // newest epoch that was handed to the host or refused

	hosted  bool            // the host has it, or may have
	told    bool            // the host was told to stop it
	removed bool            // the host was told to remove it
	lingers bool            // it has failed, and the host may have it train until it is removed
	keeping bool            // what it has come to is being taken
	ending  *executor.Ended // with keeping: that
	unkept  *Kept           // with keeping: it is on no disk yet, as was found; nil: that was not tried
	tries   bool            // with keeping: that is under way
	status  wire.JobStatus
	outcome outcome
	result  *wire.Result // with losses and weights, which is still to be stored; nil: nothing is
	storing bool         // that is being done

	parks    bool  // the host was told to park it, and not to resume it since
	parkings int64 // how often it was told so
	rests    bool  // it is in Home since the last time
	// of a replica, see inStep
	at        int           // ordered: complete iterations after which it does what it is to do
	neighbour *wire.Meeting // ordered: where the replica before it listens; nil: it is not known
	joins     wire.Meeting  // the neighbour that it was told
	meets     bool          // it was told to listen for the next one
	parts     bool          // it was told to close its connections
	parkAt    int           // with parks: at
	armedAt   int           // with armed: complete iterations after which the state is taken

	taking taking // how far the present checkpoint is
	tried  tried  // the newest one
	failed string // why it was not written, in a line; "": it was
}

// same reports whether two specs are those of one job. What only planners look at may change, and what a script was
// seen to do.
func same(a, b wire.Spec) bool {
	a.Priority, a.SwapRate = b.Priority, b.SwapRate
	if a.Script && b.Script {
		a.Graph, a.Held, a.Least = b.Graph, b.Held, b.Least
	}
	return a == b
}

// advance has every job do what it can do next.
func (m *Machine) advance() {
	for i := 0; i < len(m.jobs); {
		j := m.jobs[i]
		m.next(j)
		if i < len(m.jobs) && m.jobs[i] == j { // it was not forgotten
			i++
		}
	}
}

// next has a job do what it can do next.
func (m *Machine) next(j *job) {
	over := j.status.State.Over()
	if over || !j.named {
		m.part(j)
	}
	if over && j.result != nil && !j.storing && !j.again && m.online {
		j.storing = true
		m.say(Output{Store: &Store{j.ticket, wire.ResultKey(m.process.Executor, j.spec.ID, j.number), j.result}})
	}
	switch {
	case j.keeping:
		m.keep(j)
	case j.hosted && (over || !j.named):
		if !j.removed {
			j.removed = true
			m.say(Output{Remove: j.spec.Name})
		}
	case j.taking == writing && (over || !j.named):
	case !j.named:
		m.forget(j)
	case over:
	case j.inStep():
		m.stepped(j)
	case m.suspends(j):
		m.suspend(j)
	case (j.stop || m.drain != nil) && j.hosted:
		if !j.told {
			j.told = true
			m.say(Output{Stop: j.spec.Name})
		}
	case j.stop:
		m.over(j, wire.Stopped, "before it began")
	case m.drain != nil:
		m.cutShort(j)
	case !j.hosted && j.park != "":
		m.state(j, wire.Resting)
	case j.hosted:
		if j.unplanned != j.known {
			j.known = j.unplanned
			m.say(Output{Unplanned: &Unplanned{j.spec.Name, j.unplanned}})
		}
		m.rest(j)
		m.take(j)
		m.fetch(j)
	default:
		m.state(j, wire.Waiting)
		m.fetch(j)
	}
}

// fetch fetches what a job is to train, and then the layout with which.
func (m *Machine) fetch(j *job) {
	switch {
	case j.busy || j.again:
	case j.task == nil || j.stale:
		j.busy = true
		m.say(Output{Prepare: &Prepare{j.ticket, j.spec, j.number, j.from, j.inStep()}})
	case j.epoch > j.settled:
		j.busy = true
		m.say(Output{Fetch: &Fetch{j.ticket, j.spec.Name, j.spec.ID, j.epoch, *j.task,
			j.spec.Checkpoint != wire.Interval{}}})
	}
}

// state notes where a job is.
func (m *Machine) state(j *job, s wire.State) {
	if j.status.State != s {
		j.status.State, m.news = s, true
	}
}

// over ends a job. why may be empty.
func (m *Machine) over(j *job, s wire.State, why string) {
	m.overAs(j, Event{Kind: Over, State: s, Why: why})
}

func (m *Machine) overAs(j *job, e Event) {
	j.status.State, j.status.Arena, m.news = e.State, 0, true
	e.Job, e.Iterations = j.spec.Name, j.status.Iteration
	if e.State == wire.Suspended && j.status.Checkpoint != nil {
		e.File = j.status.Checkpoint.File
	}
	if j.status.Result != nil {
		e.Saved = j.status.Result.Saved
	}
	m.event(e)
	if m.drain != nil {
		m.account = append(m.account, e.Notice())
	}
}

func (m *Machine) fail(j *job, err error) {
	j.status.Error = line(err)
	_, j.status.Diverged = errors.AsType[*task.DivergedError](err)
	m.over(j, wire.Failed, j.status.Error)
}

// expel has a job fail that the host has. That is said when it has it no more: until then it may have its arena.
func (m *Machine) expel(j *job, err error) {
	j.lingers = true
	m.fail(j, err)
}

// cutShort ends a job that was not over when the process was interrupted. To its owner it has failed.
func (m *Machine) cutShort(j *job) {
	e := Event{Kind: Interrupted, State: wire.Failed}
	how := "not saved"
	switch r := j.status.Result; {
	case j.spec.Script:
		how, e.Why = "and its script told to end", "its script was told to end"
	case r != nil && r.Saved != "":
		how = "saved in " + r.Saved
	}
	j.status.Error = line(fmt.Errorf("%w, %s", m.drain, how))
	m.overAs(j, e)
}

// trouble is an error that the job survives.
func (m *Machine) trouble(j *job, err error) {
	if why := line(err); why != j.status.Error {
		j.status.Error, m.news = why, true
		m.event(Event{Kind: Troubled, Job: j.spec.Name, Why: why})
	}
}

// waiting returns the job for which something was fetched, nil if it has no use for that any more.
func (m *Machine) waiting(t Ticket) *job {
	j := m.findBy(func(j *job) bool { return j.ticket == t })
	if j == nil {
		return nil
	}
	if j.busy = false; j.status.State.Over() || !j.named || j.stop && !j.inStep() || m.drain != nil {
		return nil
	}
	return j
}

func (m *Machine) prepared(p *Prepared) {
	switch j := m.waiting(p.Ticket); {
	case j == nil:
	case p.Err == nil && j.spec.Script && p.Graph != j.spec.Graph: // the script does something else by now
	case p.Err == nil:
		j.task, j.begin, j.stale = &p.Task, p.Begin, false
		j.status.Error = ""
		m.resumed(j, p.Notes)
	case p.Again:
		j.again = true
		m.trouble(j, p.Err)
	default:
		_, j.status.Lacks = errors.AsType[lackingError](p.Err)
		_, j.status.Damaged = errors.AsType[damagedError](p.Err)
		m.fail(j, p.Err)
	}
}

// fetched hands a layout to the host, unless a newer one was ordered meanwhile.
func (m *Machine) fetched(f *Fetched) {
	j := m.waiting(f.Ticket)
	if j == nil || f.Epoch != j.epoch || !j.hosted && j.park != "" && !j.inStep() {
		return
	}
	switch {
	case f.Err != nil && f.Again:
		j.again = true
		m.trouble(j, fmt.Errorf("layout %d: %w", f.Epoch, f.Err))
		return
	case f.Err != nil && j.parks: // it must not go on with the layout before
		m.expel(j, fmt.Errorf("layout %d is refused: %w", f.Epoch, f.Err))
	case f.Err != nil:
		m.trouble(j, fmt.Errorf("layout %d is refused: %w", f.Epoch, f.Err))
	case j.hosted:
		j.outcome.planned(f)
		m.say(Output{Change: &Change{j.spec.Name, f.Proven}})
	default:
		j.outcome.planned(f)
		j.hosted, j.tried.iteration = true, j.status.Iteration
		every := 0
		if j.inStep() {
			every = j.spec.Checkpoint.Iterations
		}
		m.say(Output{Open: &Open{j.ticket, j.spec, *j.task, j.begin, every, f.Proven}})
		if j.trace.Number > 0 {
			m.say(Output{Trace: &Trace{j.spec.Name, j.trace.Iterations}})
		}
	}
	j.settled = f.Epoch
}

// observed takes what the host observed.
func (m *Machine) observed(e *executor.Event, loss *wire.Loss) {
	j := m.find(e.Job)
	if j == nil || !j.hosted {
		return
	}
	switch {
	case e.Report != nil:
		m.iteration(j, e.Report, loss)
	case e.Applied != nil:
		m.applied(j, e.Applied)
	case e.Home:
		j.status.Arena, m.news = 0, true
	case e.Begun != 0:
		m.begun(j, e.Begun)
	case e.Parked != 0:
		m.parked(j, e.Parked)
	case e.Snapshot != nil:
		m.taken(j, e.Snapshot)
	case e.Troubled != nil:
		m.trouble(j, e.Troubled)
	case e.Refused != nil && !j.status.State.Over() && !j.spec.Script && (j.parks ||
		j.status.State == wire.Waiting && j.status.Epoch > 0):
		m.expel(j, e.Refused) // it must not go on with the layout before; a script has none that was taken from it
	case e.Refused != nil && !j.status.State.Over():
		m.trouble(j, e.Refused)
	case e.Ended != nil:
		m.ended(j, e.Ended)
	case e.Removed:
		if !j.status.State.Over() {
			m.event(Event{Kind: Dropped, Job: j.spec.Name, Iterations: j.status.Iteration})
		}
		j.hosted, m.news = false, true
	}
}

func (m *Machine) iteration(j *job, r *executor.Report, loss *wire.Loss) {
	j.status.Iteration = r.Iteration + 1
	if r.Script != nil {
		if r.Script.Loss != nil {
			told := wire.Loss(*r.Script.Loss)
			loss = &told
		}
		now := wire.Allocated{Plan: r.Script.Plan, Reserve: r.Script.Reserve, Touched: r.Touched}
		m.news = m.news || j.status.Script == nil || now.Reserve > j.status.Script.Reserve
		j.status.Script = &now
	}
	if j.outcome.iteration(r, m.now) || r.Iteration+1 == j.spec.Iterations {
		j.outcome.logged = m.now
		m.event(Event{Kind: Iterated, Job: j.spec.Name, Epoch: r.Epoch, Iterations: r.Iteration,
			Took: r.End - r.Begin, Stall: r.Stall, Gate: r.Gate, Loss: loss})
	}
	if m.online {
		m.say(Output{Report: &wire.Report{Executor: m.process.Executor, Job: j.spec.Name, ID: j.spec.ID,
			Incarnation: j.number, Epoch: r.Epoch, Iteration: r.Iteration, Steps: r.Steps, Stall: r.Stall,
			Gate: r.Gate, Wall: r.End - r.Begin, Touched: r.Touched,
			Loss: loss, Copies: j.copiesOf(r)}})
	}
}

// copiesOf are the copies of an iteration, if they are wanted.
func (j *job) copiesOf(r *executor.Report) []wire.Copy {
	if !j.copies {
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

func (m *Machine) applied(j *job, a *executor.Applied) {
	j.outcome.applied(a)
	event := Event{Kind: Applied, Job: j.spec.Name, Epoch: a.Epoch, Arena: a.Arena}
	if j.status.Epoch == 0 {
		event.Iterations, event.Model, event.Done = j.spec.Iterations, j.spec.Model, j.status.Iteration
		j.tried.at = m.now
	}
	m.event(event)
	j.status.State, j.status.Epoch, j.status.Arena, m.news = wire.Running, a.Epoch, a.Arena, true
	if a.Epoch == j.settled { // no newer one was refused
		j.status.Error = ""
	}
}

// ended has what a job has come to taken, unless nobody wants it.
func (m *Machine) ended(j *job, e *executor.Ended) {
	j.status.Iteration, j.status.Arena, m.news = max(j.status.Iteration, e.Iterations), 0, true
	j.outcome.plans, j.outcome.transition, j.outcome.touched = e.Plans, e.Transition, e.Touched
	switch {
	case e.Err != nil:
		if full, ok := errors.AsType[*device.OutOfMemoryError](e.Err); ok {
			j.status.Free = &full.Free
		}
		_, j.status.Alone = errors.AsType[*reduce.LostError](e.Err)
		m.fail(j, e.Err)
	case j.named && !j.removed:
		j.keeping, j.ending = true, e
	}
}

// keep has what a job has come to taken when no checkpoint of it is being written, and again at a heartbeat as long as
// it is on no disk. A job that is to end whatever becomes of that, or that nobody wants, ends without.
func (m *Machine) keep(j *job) {
	switch {
	case j.tries || j.taking == writing || j.status.State.Over():
	case j.unkept != nil && (j.stop || m.drain != nil || !j.named):
		m.come(j, j.unkept)
		m.next(j)
	case j.unkept == nil || !j.again:
		j.tries = true
		m.say(Output{Keep: &Keep{j.ticket, j.spec, j.number, *j.task, j.ending}})
	}
}

func (m *Machine) kept(k *Kept) {
	j := m.findBy(func(j *job) bool { return j.ticket == k.Ticket })
	if j == nil || !j.keeping {
		return
	}
	if k.Again && !j.stop && m.drain == nil {
		j.unkept, j.tries, j.again = k, false, true
		m.trouble(j, fmt.Errorf("%w; it is tried again until that works, or the job is stopped", k.Err))
		return
	}
	m.come(j, k)
}

// come ends a job with what it has come to.
func (m *Machine) come(j *job, k *Kept) {
	if j.unkept != nil {
		j.again, j.status.Error = false, ""
	}
	j.keeping, j.ending, j.unkept, j.tries = false, nil, nil, false
	j.status.Result, j.result = j.outcome.result(k, m.process.Origin)
	if k.Checkpoint != nil {
		j.status.Checkpoint = k.Checkpoint
		m.event(Event{Kind: Checkpointed, Job: j.spec.Name, Iterations: k.Checkpoint.Iteration,
			File: k.Checkpoint.File})
	}
	switch {
	case k.Err != nil:
		m.fail(j, k.Err)
	case j.spec.Script && !j.told || !j.spec.Script && j.status.Iteration >= j.spec.Iterations:
		m.over(j, wire.Finished, "")
	case m.drain != nil && !j.stop:
		m.cutShort(j)
	default:
		m.over(j, wire.Stopped, "")
	}
}

// stored has a job that is over be told of, with its result.
func (m *Machine) stored(s *Stored) {
	j := m.findBy(func(j *job) bool { return j.ticket == s.Ticket })
	if j == nil || !j.storing {
		return
	}
	if j.storing = false; s.Err != nil {
		j.again = true
		return
	}
	j.status.Result.Stored, j.result, m.news = wire.ResultKey(m.process.Executor, j.spec.ID, j.number), nil, true
}

// said is what is said of a job: that it is over when its result is stored and the host has given back what it had, and
// not before; and that it has failed when no checkpoint of it is being written, which would be its newest.
func (j *job) said() wire.JobStatus {
	s := j.status
	if s.Error == "" && !s.State.Over() {
		s.Error = j.failed
	}
	if j.inStep() {
		s.Begun = max(s.Begun, s.Iteration)
	}
	switch {
	case j.result != nil, j.lingers && j.hosted, s.State == wire.Failed && j.taking == writing:
		s.State, s.Error, s.Result, s.Alone = wire.Running, "", nil, false
	case s.State == wire.Suspended && j.hosted:
		s.State = wire.Resting // it has its host slots still
	}
	return s
}

// line is the text of an error as a status holds it.
func line(err error) string { return text.Line(err.Error(), 500) }
