package executor

import (
	"fmt"
	"slices"
	"time"

	"tensile/device"
	"tensile/device/lease"
	"tensile/plan/program"
	"tensile/swapexec"
)

// state is where a job is in its life.
type state string

const (
	Home     state = "home"     // nothing is on the device, and the job may leave Home by a program
	Training state = "training" // the prologue or bodies are in flight
	Draining state = "draining" // no body is issued any more, and those in flight end
	Epilogue state = "epilogue" // the epilogue is in flight
	Finished state = "finished" // the job is in Home and stays there
)

// window is the limit of bodies in flight.
const window = 2

// Input is what a machine is told.
type Input struct {
	// Program is the program to train with from the next iteration on.
	Program *program.Program
	// Groups are, with a Program, the groups in which it is issued under a lease; nil: there is no lease.
	Groups *program.Groups
	// Tell has, with Groups, the lease told what the groups are expected to need.
	Tell bool
	// Stop has the job go Home after the iterations in flight and finish.
	Stop bool
	// Until has the job rest in Home when so many iterations are complete, until a later Until is larger.
	Until *int
	// Park has the job rest in Home after the iterations in flight, until a Resume. It numbers the request; 0: there is
	// none.
	Park int64
	// Resume has the job leave Home by the newest program.
	Resume bool
	// Event says that a command has ended.
	Event *device.Event
	// Granted is the number of what was asked for, which the lease grants now.
	Granted int64
	// Drain has the job go Home after the iterations in flight, because the lease wants its memory back.
	Drain bool
	// Trace asks for traces of so many more iterations and of what comes between them.
	Trace int
	// Skip counts so many iterations as trained, see Host.Skip.
	Skip int

	// Checkpoint asks for the state of the job at the next iteration boundary. Another one before that may change At.
	Checkpoint bool

	// At is, with Park or Checkpoint, how many iterations are complete at least before the job rests or its state is
	// taken. It comes too late if more have begun, see Machine.Begun.
	At int
	// Forgo has the job not wait for a Checkpoint after so many iterations. It counts only if Spec.Every is set.
	Forgo int
}

// Output is what a machine wants done; exactly one field is set.
type Output struct {
	// Load is a program to be bound to the job, with an arena of its size.
	Load *program.Program
	// Hold are the pages of that arena that the job needs, and no others.
	Hold *hold
	// Issue is a part of a section of the program that was loaded last, for the device.
	Issue *Issue
	// Lease is to be told to the lease, with the time. Of such outputs of one Step at most the last asks for something.
	Lease *lease.Input
	// Report is what an iteration took.
	Report *Report
	// Trace is what a section has done.
	Trace *Trace
	// Home says that the job is in Home. If there is a next program, its Load follows at once.
	Home bool
	// Snapshot is a state that a Checkpoint asked for.
	Snapshot *taken
	// Parked says that the job is in Home and stays there until a Resume or Stop. It is the number of the Park; 0: not
	// said.
	Parked int64
	// Finished says that the job has trained all iterations or was stopped. It stays in Home.
	Finished bool
}

// taken is the state that a Checkpoint wants.
type taken struct {
	// Iteration is how many iterations are complete.
	Iteration int
	// Home says that the state is in the host slots of a job in Home; otherwise the snapshot section has copied it out.
	Home bool
}

// hold says which pages of its arena a job needs.
type hold struct{ Pages program.Pages }

// Issue hands commands [From, To) of a section to the device.
type Issue struct {
	// Section is the section that the commands are of.
	Section *program.Section
	// From and To bound the commands [From, To) of the section.
	From, To int
	// Iteration is the iteration that the commands belong to, from 0.
	Iteration int
	// Drain says that the section is a prologue or an epilogue.
	Drain bool
}

// Machine decides for one job. Its inputs come in the order of the device's events.
type Machine struct {
	// name is the job's name.
	name string
	// iterations is the number of complete iterations after which the job finishes, skipped ones left out.
	iterations int
	// until is the number of complete iterations after which the job rests in Home, skipped ones left out.
	until int

	// state is where the job is.
	state state
	// program is the program in force, or the last one; nil before the first.
	program *program.Program
	// next replaces program when the job is in Home next; nil: program stays.
	next *program.Program
	// now is the time of the newest input.
	now time.Duration
	// stop says that the job is to finish after the iterations in flight.
	stop bool
	// resting says that a job in Home stays there until more iterations are wanted or it is resumed.
	resting bool
	// parked is the number of the last Park; 0: a Resume has come since then, or no Park ever.
	parked int64
	// parkReported says that an Output has answered that Park.
	parkReported bool
	// parkAt is how many iterations are begun at least before the job rests for that Park, skipped ones included.
	parkAt int
	// snapshotWanted says that a Checkpoint has come and its state is not taken yet.
	snapshotWanted bool
	// snapshotAt is how many iterations are begun at least before that state is taken, skipped ones included; 0: any
	// number.
	snapshotAt int
	// snapshotEvery is the number of iterations of whose multiples each has the job wait for a Checkpoint; 0: it never
	// waits.
	snapshotEvery int
	// noSnapshotUpTo is the largest number of iterations after which the job does not wait for a Checkpoint.
	noSnapshotUpTo int

	// issued is how many iterations were handed to the device, with those before the job began. So counts ended.
	issued int
	// endedAtDeparture is how many iterations were complete when the job left Home last.
	endedAtDeparture int
	// ended is how many iterations are complete.
	ended int
	// runs are the sections in flight, oldest first.
	runs []*run
	// previousEvents are the events of the last complete section, to which points of the next may refer.
	previousEvents []device.Event
	// nextBegin is when the next iteration begins: the end of the last one's kernels.
	nextBegin time.Duration
	// lastEnd is when the last complete section ended.
	lastEnd time.Duration
	// pausedSince is the time since when the job has trained no iteration. It counts outside of bodies.
	pausedSince time.Duration
	// paused is the sum of the times between bodies of different stays outside of Home, see Transition.
	paused time.Duration
	// plans is how many programs were applied.
	plans int
	// swap keeps account of the copies in flight.
	swap swapexec.Machine
	// traceLeft is how many iterations are still to be traced.
	traceLeft int
	// skipped is how many iterations were counted without being trained. All that is reported includes them, and no
	// other field does unless it says so.
	skipped int

	// weight is the job's weight against others at the lease; 0: 1.
	weight int
	// gates are the groups of program; nil: there is no lease. So are nextGates of next.
	gates     *gates
	nextGates *gates
	// joinGates are the groups with which the job has joined the lease or asked to; nil: it has left, or never joined.
	joinGates *gates
	// joined says that the lease has granted the join.
	joined bool
	// drainWanted says that the lease wants the memory of the job back.
	drainWanted bool
	// lastAsk is the number of what was asked for last; 0: nothing was.
	lastAsk int64
	// lastGrant is the number of the last grant that was heard of.
	lastGrant int64
	// want is what the job asks for and was not granted yet; nil: it asks for nothing.
	want *lease.Want
	// wantSection is the section that want belongs to. It counts while want is set.
	wantSection *program.Section
	// askedSince is the time since when the job waits for a grant. It counts while want is set, or a join is not
	// granted.
	askedSince time.Duration
	// heldPages are the pages that the job holds.
	heldPages program.Pages
	// busyGroups is how many groups in flight have kernels that have not ended.
	busyGroups int
	// mayRelease says that something has ended since the last release, after which the job may need less.
	mayRelease bool
}

// run is a section in flight.
type run struct {
	// section is what is in flight.
	section *program.Section
	// iteration is the iteration that it belongs to.
	iteration int
	// events are the ends of its commands, by index; a zero event stands for a command that has not ended.
	events []device.Event
	// pending is how many of its commands have not ended.
	pending int
	// issued is how many of its commands were handed to the device.
	issued int
	// gates are its groups; nil: it is issued as a whole.
	gates []gate
	// parts are the groups that were issued.
	parts []part
}

// NewMachine returns the machine of a job in Home that has begin complete iterations and trains until there are as many
// as iterations says.
func NewMachine(name string, begin, iterations int) *Machine {
	return &Machine{name: name, iterations: iterations, until: iterations, state: Home, issued: begin, ended: begin,
		noSnapshotUpTo: begin}
}

// State returns where the job is.
func (m *Machine) State() state { return m.state }

// Epoch returns that of the program in force, or of the last one; 0 before the first.
func (m *Machine) Epoch() int64 {
	if m.program == nil {
		return 0
	}
	return m.program.Plan.Epoch
}

// Iterations returns how many are complete, those before the job began included.
func (m *Machine) Iterations() int { return m.ended + m.skipped }

// Plans returns how many programs were applied, and Transition the time spent between bodies of different stays outside
// of Home. The first way out of Home and the last way back count, and rests do not.
func (m *Machine) Plans() int                { return m.plans }
func (m *Machine) Transition() time.Duration { return m.paused }

// Queue returns the state of the copies in one direction.
func (m *Machine) Queue(u program.Unit) swapexec.Queue { return m.swap.Queue(u) }

// Step takes one input and returns what is to be done, in order.
func (m *Machine) Step(now time.Duration, in Input) []Output {
	m.now = now
	var out []Output
	switch {
	case in.Event != nil:
		out = m.endCommand(in.Event)
	case in.Program != nil:
		m.next, m.nextGates = in.Program, nil
		if in.Groups != nil {
			m.nextGates = newGates(in.Program, in.Groups)
			if in.Tell {
				m.nextGates.addExpectations()
			}
		}
	case in.Granted != 0:
		out = m.handleGrant(in.Granted, out)
	case in.Drain:
		m.drainWanted = true
	case in.Trace != 0:
		m.traceLeft = max(m.traceLeft, in.Trace) // keep the larger of two requests
	case in.Skip != 0:
		m.skip(in.Skip)
	case in.Stop:
		m.stop = true
	case in.Until != nil:
		m.until = *in.Until - m.skipped
	case in.Park != 0:
		m.parked, m.parkReported, m.parkAt = in.Park, false, in.At
	case in.Resume:
		m.parked, m.parkReported = 0, false
	case in.Checkpoint:
		if !m.snapshotInFlight() {
			m.snapshotWanted, m.snapshotAt = true, in.At
		}
	case in.Forgo != 0:
		m.noSnapshotUpTo = max(m.noSnapshotUpTo, in.Forgo)
	}
	return m.advance(out)
}

// endCommand records an ended command and completes the oldest section when it was its last.
func (m *Machine) endCommand(e *device.Event) []Output {
	for _, r := range m.runs {
		if r.awaits(e) {
			m.swap.Ended(&r.section.Commands[e.Index])
			r.events[e.Index] = *e
			r.pending--
			if r.gates != nil {
				m.countEnded(r, e.Index)
			}
			return m.release(m.complete())
		}
	}
	panic(fmt.Sprintf("executor: job %s: command %d of iteration %d ended, which is not in flight",
		m.name, e.Index, e.Iteration))
}

// awaits reports whether an event's command belongs to the section and has not ended before.
func (r *run) awaits(e *device.Event) bool {
	return r.section == e.Section && r.iteration == e.Iteration &&
		e.Index >= 0 && e.Index < r.issued && r.events[e.Index].Section == nil
}

// inFlight reports whether a command that was issued has not ended. A section without such a command may wait for the
// lease.
func (m *Machine) inFlight() bool {
	return slices.ContainsFunc(m.runs, func(r *run) bool { return r.issued+r.pending > len(r.section.Commands) })
}

// complete removes the finished sections from the front of runs.
func (m *Machine) complete() []Output {
	var out []Output
	for len(m.runs) > 0 && m.runs[0].pending == 0 {
		r := m.runs[0]
		m.runs, m.mayRelease = m.runs[1:], true
		begin, gated := m.nextBegin, []time.Duration(nil)
		switch r.section {
		case &m.program.Snapshot:
			out = append(out, Output{Snapshot: &taken{Iteration: r.iteration + m.skipped}})
			fallthrough
		case &m.program.Body:
			var report *Report
			report, gated = m.measure(r)
			begin = report.Begin
			out = append(out, Output{Report: report})
			m.ended++
		}
		if m.traceLeft > 0 {
			out = append(out, Output{Trace: &Trace{Program: m.program, Section: r.section,
				Iteration: r.iteration + m.skipped, Begin: begin, Events: r.events, Gates: gated}})
			if gated != nil {
				m.traceLeft--
			}
		}
		m.previousEvents = r.events
		m.lastEnd = max(m.lastEnd, latestEnd(r.events))
	}
	return out
}

// advance goes through the states as far as it can without waiting.
func (m *Machine) advance(out []Output) []Output {
	for {
		switch m.state {
		case Home:
			out = m.takeSnapshot(out)
			if m.isOver() {
				m.state = Finished
				return append(m.leaveLease(out), Output{Finished: true})
			}
			if m.next == nil {
				m.next, m.nextGates = m.program, m.gates // after a rest it goes on as before
			}
			if m.mustPark() && !m.parkReported {
				m.parkReported = true
				out = append(out, Output{Parked: m.parked})
			}
			if m.resting = m.resting || m.mustRest(); m.next == nil || m.mustRest() {
				return m.leaveLease(out)
			}
			var admitted bool
			if out, admitted = m.join(out); !admitted {
				return out
			}
			if m.plans == 0 || m.resting {
				m.pausedSince, m.resting = m.now, false
			} else if m.joinGates != nil {
				m.pausedSince += m.now - m.askedSince
			}
			if m.next != m.program {
				m.plans++
			}
			m.program, m.gates, m.next, m.nextGates = m.next, m.nextGates, nil, nil
			out = m.depart(append(out, Output{Load: m.program}))
		case Training:
			r := m.partialRun()
			if r == nil && (m.next != nil || m.stop || m.drainWanted || m.mustPark() ||
				m.issued >= min(m.iterations, m.until) ||
				m.snapshotDue() && !m.hasSnapshotSection() && (m.issued > m.endedAtDeparture || m.snapshotAt > 0)) {
				m.state, m.want = Draining, nil
				continue
			}
			if r == nil && (m.issued-m.ended == window || m.awaitsSnapshot()) {
				return out
			}
			section := &m.program.Body
			if m.snapshotDue() && m.hasSnapshotSection() {
				section = &m.program.Snapshot
			}
			if r != nil {
				section = r.section
			}
			if m.gates != nil && m.gates.asks {
				return m.askNextGroup(out, section)
			}
			m.snapshotWanted = m.snapshotWanted && section == &m.program.Body
			out = m.issue(out, section, m.issued, false)
			m.issued++
		case Draining:
			if len(m.runs) > 0 {
				return out
			}
			if m.state = Epilogue; m.ended > m.endedAtDeparture {
				m.pausedSince = m.lastEnd
			}
			out = m.issue(out, &m.program.Epilogue, m.issued, true)
		case Epilogue:
			if len(m.runs) > 0 {
				return out
			}
			m.lastEnd = max(m.lastEnd, m.pausedSince) // without a command on the way out and back
			m.paused += m.lastEnd - m.pausedSince
			m.pausedSince, m.state = m.lastEnd, Home
			if m.snapshotDue() && m.gates == nil {
				out = m.takeSnapshot(out)
				if m.next == nil && !m.isOver() && !m.mustRest() {
					out = m.depart(out) // with the arena and the program that it has
					continue
				}
			}
			m.resting, m.drainWanted = m.drainWanted, false
			out = m.leaveLease(append(out, Output{Home: true}))
		case Finished:
			return out
		}
	}
}

// skip counts iterations as trained. Those that are in flight stay to be trained.
func (m *Machine) skip(n int) {
	if n < 0 || n > min(m.iterations, m.until)-m.issued {
		panic(fmt.Sprintf("executor: job %s: Skip(%d) after %d of %d iterations were issued", m.name, n, m.issued,
			min(m.iterations, m.until)))
	}
	m.skipped, m.iterations, m.until = m.skipped+n, m.iterations-n, m.until-n
}

// isOver reports whether a job in Home has nothing more to train.
func (m *Machine) isOver() bool { return m.stop || m.ended >= m.iterations }

// mustRest reports whether a job in Home is to stay there for now.
func (m *Machine) mustRest() bool { return m.mustPark() || m.ended >= m.until }

// mustPark reports whether the job is to rest as soon as what it has begun is complete.
func (m *Machine) mustPark() bool { return m.parked != 0 && m.issued+m.skipped >= m.parkAt }

// snapshotDue reports whether a snapshot is to be taken before the next iteration begins.
func (m *Machine) snapshotDue() bool { return m.snapshotWanted && m.issued+m.skipped >= m.snapshotAt }

// awaitsSnapshot reports whether the next iteration may not begin, since the state before it is to be taken and there
// is no room for that yet.
func (m *Machine) awaitsSnapshot() bool {
	at := m.issued + m.skipped
	return m.snapshotEvery > 0 && at%m.snapshotEvery == 0 && at > m.noSnapshotUpTo && !m.snapshotDue()
}

// Begun returns how many iterations the device was given, and those before the job began. One that the lease was asked
// for counts.
func (m *Machine) Begun() int {
	begun := m.issued + m.skipped
	if m.want != nil && m.partialRun() == nil {
		begun++
	}
	return begun
}

// takeSnapshot emits the state of a job in Home if a Checkpoint has asked for it.
func (m *Machine) takeSnapshot(out []Output) []Output {
	if m.snapshotDue() {
		m.snapshotWanted, m.noSnapshotUpTo = false, max(m.noSnapshotUpTo, m.Iterations())
		out = append(out, Output{Snapshot: &taken{m.Iterations(), true}})
	}
	return out
}

// hasSnapshotSection reports whether the program takes snapshots while the job trains.
func (m *Machine) hasSnapshotSection() bool { return len(m.program.Snapshot.Commands) > 0 }

// snapshotInFlight reports whether a snapshot section is in flight.
func (m *Machine) snapshotInFlight() bool {
	return slices.ContainsFunc(m.runs, func(r *run) bool { return r.section == &m.program.Snapshot })
}

// depart leaves Home by the program that is loaded. Bodies follow the prologue at once: their commands wait for what
// they use of it.
func (m *Machine) depart(out []Output) []Output {
	m.state, m.endedAtDeparture, m.previousEvents = Training, m.ended, nil
	if m.gates != nil {
		m.heldPages = m.gates.Base
		out = append(out, Output{Hold: &hold{m.heldPages}})
	}
	return m.issue(out, &m.program.Prologue, m.issued, true)
}

// issue hands over a section; an empty one is complete at once.
func (m *Machine) issue(out []Output, s *program.Section, iteration int, drain bool) []Output {
	if len(s.Commands) == 0 {
		return out
	}
	m.swap.Issued(s.Commands)
	m.start(s, iteration).issued = len(s.Commands)
	return append(out, Output{Issue: &Issue{s, 0, len(s.Commands), iteration, drain}})
}

// start makes a run of a section, in flight.
func (m *Machine) start(s *program.Section, iteration int) *run {
	r := &run{section: s, iteration: iteration, events: make([]device.Event, len(s.Commands)), pending: len(s.Commands)}
	m.runs = append(m.runs, r)
	return r
}

func latestEnd(events []device.Event) time.Duration {
	var end time.Duration
	for _, e := range events {
		end = max(end, e.End)
	}
	return end
}
