package agent

import (
	"math"
	"time"

	"tensile/executor"
	"tensile/wire"
)

// taking is how far a checkpoint is.
type taking int

const (
	none    taking = iota
	armed          // the host was told to take the state of the job after some iterations that are still to come
	asked          // the host was told to take the state of the job
	writing        // the file is being written
)

// tried is when a checkpoint was begun.
type tried struct {
	at        time.Duration
	iteration int
	again     bool // since then there was a heartbeat
	last      bool // it failed, and the process is to end
}

// takes reports whether checkpoints are taken of a job while it trains, so that it can go on elsewhere.
func (j *job) takes() bool { return j.spec.Checkpoint != wire.Interval{} }

// due reports whether it is time for the next checkpoint.
func (j *job) due(now time.Duration) bool {
	every, trained := j.spec.Checkpoint, j.status.Iteration-j.tried.iteration
	return trained > 0 && j.status.Iteration < j.spec.Iterations &&
		(every.Every > 0 && now-j.tried.at >= every.Every || every.Iterations > 0 && trained >= every.Iterations)
}

// resumed notes where a job begins, and what its owner wants to know of that.
func (m *Machine) resumed(j *job, notes []string) {
	for _, why := range notes {
		m.event(Event{Kind: Noted, Job: j.spec.Name, Why: why})
	}
	if b := j.begin; b != nil {
		j.status.Iteration, j.status.Checkpoint, m.news = b.Iteration, b.Checkpoint, true
		m.event(Event{Kind: Resumed, Job: j.spec.Name, Iterations: b.Iteration, File: b.File})
	}
}

// take has a checkpoint taken of a job that trains if it is time for one.
func (m *Machine) take(j *job) {
	if j.status.State == wire.Running && !j.parks && j.taking == none && j.due(m.now) {
		m.ask(j)
	}
}

// ask has the host take the state of a job.
func (m *Machine) ask(j *job) {
	j.taking, j.tried = asked, tried{at: m.now, iteration: j.status.Iteration}
	m.say(Output{Take: &Take{Job: j.spec.Name}})
}

// taken has a state written that is still wanted: not that of a job which ends, but for one that goes on elsewhere.
func (m *Machine) taken(j *job, s *executor.Snapshot) {
	if s.Err != nil && j.taking == armed {
		j.tried.iteration = j.armedAt
	}
	if j.taking = none; s.Err != nil && !j.status.State.Over() {
		m.missed(j, s.Err)
	}
	if s.Err != nil || !j.named || j.stop || j.told || j.status.State.Over() || s.Iteration >= j.spec.Iterations {
		return
	}
	// a simulated host tells nothing of the iterations that it skips
	j.status.Iteration = max(j.status.Iteration, s.Iteration)
	j.taking, j.tried.iteration = writing, s.Iteration
	keep := math.MaxInt
	if j.inStep() {
		keep = j.from
	}
	m.say(Output{Write: &Write{j.ticket, j.spec, j.number, *j.task, s, keep}})
}

// written notes a checkpoint, or that there is none: the job goes on, and the next one is tried in its turn.
func (m *Machine) written(w *Written) {
	j := m.findBy(func(j *job) bool { return j.ticket == w.Ticket })
	if j == nil || j.taking != writing {
		return
	}
	j.taking, j.failed, m.news = none, "", true
	if w.Err != nil {
		m.missed(j, w.Err)
		return
	}
	j.status.Since = j.since(w.Checkpoint.Iteration)
	j.status.Checkpoint = w.Checkpoint
	m.event(Event{Kind: Checkpointed, Job: j.spec.Name, Iterations: w.Checkpoint.Iteration, File: w.Checkpoint.File})
}

// missed notes that a checkpoint could not be taken.
func (m *Machine) missed(j *job, err error) {
	j.failed, j.tried.last, m.news = line(err), m.drain != nil, true
	m.event(Event{Kind: Troubled, Job: j.spec.Name, Why: j.failed})
}

// rest has a job rest in Home, or go on, as it was ordered. It goes on with the layout that was ordered with that: the
// memory of the one before may be another job's by now.
func (m *Machine) rest(j *job) {
	switch {
	case j.park != "" && !j.parks:
		m.park(j)
	case j.park == "" && j.parks && j.settled == j.epoch:
		if j.parks, j.rests = false, false; j.status.State == wire.Resting {
			m.state(j, wire.Waiting) // for the arena
		}
		m.say(Output{Resume: j.spec.Name})
	}
}

// park has the host park a job. One that leaves has a checkpoint written then: that an earlier one was not counts for
// nothing.
func (m *Machine) park(j *job) {
	j.parkings++
	if j.parks, j.rests = true, false; m.suspends(j) {
		j.failed = ""
	}
	m.say(Output{Park: &Park{j.spec.Name, j.parkings, j.parkAt}})
}

// parked notes that a job rests in Home, as it was told by the Park of a number. It may have been resumed since.
func (m *Machine) parked(j *job, number int64) {
	if j.parks && number == j.parkings && !j.status.State.Over() {
		j.rests, j.status.Arena = true, 0
		m.state(j, wire.Resting)
		m.event(Event{Kind: Rested, Job: j.spec.Name, Iterations: j.status.Iteration})
	}
}

// suspends reports whether a job is to leave this process and go on from its checkpoint some day.
func (m *Machine) suspends(j *job) bool {
	return !j.stop && (j.park == wire.OnDisk || m.drain != nil && j.takes())
}

// suspend has a job leave: it goes Home, and its state to a checkpoint unless there is one of it. Where that fails it
// rests, and it is tried again at the next heartbeat; a process that is to end leaves all the same, and the job goes on
// from the checkpoint before.
func (m *Machine) suspend(j *job) {
	c := j.status.Checkpoint
	switch {
	case !j.hosted:
		m.over(j, wire.Suspended, "")
	case !j.parks:
		m.park(j)
	case !j.rests || j.taking == asked || j.taking == writing:
	case j.taking == armed && j.armedAt == j.status.Iteration: // the host takes it here
	case c != nil && c.Iteration == j.status.Iteration || j.status.Iteration == 0:
		m.over(j, wire.Suspended, "")
	case j.tried.last:
		j.status.Error = j.failed
		m.over(j, wire.Suspended, j.failed)
	case j.failed == "" || j.tried.again:
		m.ask(j)
	}
}

// discard has the checkpoints of a job removed that is over for good: it has finished or was stopped. Those of one that
// failed stay, for whoever wants to go on from them.
func (m *Machine) discard(j *job) {
	well := j.status.State == wire.Finished || j.status.State == wire.Stopped
	follows := j.next != nil && j.next.Spec.ID == j.spec.ID
	if well && !j.elsewhere && !follows && (j.takes() || j.status.Checkpoint != nil) {
		m.say(Output{Discard: &Discard{j.spec.Name, j.spec.ID, j.number}})
	}
}
