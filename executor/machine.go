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
	Home     state = "home"
	Training state = "training"
	Draining state = "draining"
	Epilogue state = "epilogue"
	Finished state = "finished"
)

// window is the limit of bodies in flight.
const window = 2

// Input is what a machine is told.
type Input struct {
	Program *program.Program // train with it from the next iteration on
	Groups  *program.Groups  // with a Program: under a lease, with these groups; nil: without one
	Tell    bool             // with Groups: the lease is to know what they are expected to need
	Stop    bool             // go Home after the iterations in flight and finish
	Until   *int             // rest in Home when so many iterations are complete, until a later one is given
	Park    int64            // go Home after the iterations in flight, rest there until a Resume: the wish's number
	Resume  bool             // leave Home by the newest program
	Event   *device.Event    // a command has ended
	Granted int64            // the lease grants what was asked for by this number
	Drain   bool             // go Home after the iterations in flight: the lease wants what the job holds
	Trace   int              // tell all that so many more iterations do, and what comes between them
	Skip    int              // count so many iterations that were not trained: see Host.Skip

	// take the state of the job at the next iteration boundary; another one before that was taken may change At
	Checkpoint bool

	// of a Park or Checkpoint: not before so many iterations are complete. It comes too late for exactly as many if
	// more have begun: see Machine.Begun.
	At int
	// with Machine.every: no state is taken after so many iterations
	Forgo int
}

// Output is what a machine wants done; exactly one field is set.
type Output struct {
	Load     *program.Program // bind it to the job, and make its arena as large as it wants
	Hold     *hold            // of that arena these pages, no others
	Issue    *Issue           // a part of a section of the program that was loaded last
	Lease    *lease.Input     // tell the lease, with the time. At most one of these asks for something: the last
	Report   *Report
	Trace    *Trace
	Home     bool // the job is in Home; a Load of the next program follows at once if there is one
	Snapshot *taken
	Parked   int64 // it is in Home and stays there until a Resume or Stop, as the Park of this number wants
	Finished bool  // it has trained all iterations, or was stopped, and stays in Home
}

// taken is the state that a Checkpoint wants.
type taken struct {
	Iteration int  // complete ones
	Home      bool // it is in the host slots, of a job in Home; else the snapshot section has copied it out
}

// hold says which pages of its arena a job needs.
type hold struct{ Pages program.Pages }

// Issue hands commands [From, To) of a section to the device.
type Issue struct {
	Section   *program.Section
	From, To  int
	Iteration int
	Drain     bool
}

// Machine decides for one job. Its inputs come in the order of the device's events.
type Machine struct {
	name       string
	iterations int
	until      int // complete iterations after which the job rests

	state          state
	program        *program.Program
	next           *program.Program // for the next stay in Home
	now            time.Duration
	stop           bool
	resting        bool  // in Home, until more iterations are wanted or it is resumed
	parked         int64 // number of the last Park; 0: since then there was a Resume
	parkReported   bool  // that it is parked
	parkAt         int   // complete iterations before which it does not rest
	snapshotWanted bool  // a snapshot
	snapshotAt     int   // complete iterations before which that is not taken
	snapshotEvery  int   // iterations after which the job waits until a snapshot is wanted; 0: it never does
	noSnapshotUpTo int   // it waits for none after so many, or fewer

	issued           int    // iterations handed over, with those before the job began
	endedAtDeparture int    // iterations complete when it left Home last
	ended            int    // iterations complete
	runs             []*run // in flight, oldest first
	previousEvents   []device.Event
	nextBegin        time.Duration // of the next iteration: when the last one's kernels ended
	lastEnd          time.Duration // end of the last section
	pausedSince      time.Duration // since when the job has not been training
	paused           time.Duration // sum of those times
	plans            int
	swap             swapexec.Machine
	traceLeft        int // iterations still to be told of
	skipped          int // iterations that count in all that is told, and in no other field

	// Under a lease.
	weight      int
	gates       *gates // of the program; nil: there is no lease
	nextGates   *gates
	joinGates   *gates // with which it has joined, or asked to; nil: it has not
	joined      bool
	drainWanted bool
	lastAsk     int64            // number of what was asked for last
	lastGrant   int64            // of the last grant
	want        *lease.Want      // that was not granted yet
	wantSection *program.Section // of which that is
	askedSince  time.Duration    // when something was asked for first that was not granted yet
	heldPages   program.Pages
	busyGroups  int  // groups in flight with commands of the compute lane that have not ended
	mayRelease  bool // something has ended, after which the job may need less
}

// run is a section in flight.
type run struct {
	section   *program.Section
	iteration int
	events    []device.Event
	pending   int
	issued    int    // commands
	gates     []gate // nil: it is issued as a whole
	parts     []part // of the gates, those that were issued
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

// Plans returns how many programs were applied, and Transition the time spent between their bodies, the way out of
// Home at first and back into it at last included, rests left out.
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
		m.traceLeft = max(m.traceLeft, in.Trace) // one who wanted more before gets it
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

// inFlight reports whether a command that was issued has not ended. A section of which none is may wait for the lease.
func (m *Machine) inFlight() bool {
	return slices.ContainsFunc(m.runs, func(r *run) bool { return r.issued+r.pending > len(r.section.Commands) })
}

// complete takes finished sections off the front.
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
			report, gated = m.report(r)
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

// takeSnapshot has the state of a job in Home taken if that is wanted.
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
