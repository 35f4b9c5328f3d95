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

	state   state
	program *program.Program
	next    *program.Program // for the next stay in Home
	now     time.Duration
	stop    bool
	rests   bool  // in Home, until more iterations are wanted or it is resumed
	parked  int64 // number of the last Park; 0: since then there was a Resume
	said    bool  // that it is parked
	parkAt  int   // complete iterations before which it does not rest
	wanted  bool  // a snapshot
	takeAt  int   // complete iterations before which that is not taken
	every   int   // iterations after which the job waits until a snapshot is wanted; 0: it never does
	without int   // it waits for none after so many, or fewer

	issued   int    // iterations handed over, with those before the job began
	left     int    // iterations complete when it left Home last
	ended    int    // iterations complete
	runs     []*run // in flight, oldest first
	before   []device.Event
	begin    time.Duration // of the next iteration: when the last one's kernels ended
	last     time.Duration // end of the last section
	departed time.Duration // since when the job has not been training
	away     time.Duration // sum of those times
	plans    int
	swap     swapexec.Machine
	traced   int // iterations still to be told of
	skipped  int // iterations that count in all that is told, and in no other field

	// Under a lease.
	weight    int
	gates     *gates // of the program; nil: there is no lease
	nextGates *gates
	joins     *gates // with which it has joined, or asked to; nil: it has not
	joined    bool
	drains    bool
	ask       int64            // number of what was asked for last
	seen      int64            // of the last grant
	want      *lease.Want      // that was not granted yet
	begins    *program.Section // of which that is
	asked     time.Duration    // when something was asked for first that was not granted yet
	held      program.Pages
	busy      int  // groups in flight with commands of the compute lane that have not ended
	passed    bool // something has ended, after which the job may need less
}

// run is a section in flight.
type run struct {
	section   *program.Section
	iteration int
	events    []device.Event
	left      int
	issued    int    // commands
	gates     []gate // nil: it is issued as a whole
	parts     []part // of the gates, those that were issued
}

// NewMachine returns the machine of a job in Home that has begin complete iterations and trains until there are as many
// as iterations says.
func NewMachine(name string, begin, iterations int) *Machine {
	return &Machine{name: name, iterations: iterations, until: iterations, state: Home, issued: begin, ended: begin,
		without: begin}
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
func (m *Machine) Transition() time.Duration { return m.away }

// Queue returns the state of the copies in one direction.
func (m *Machine) Queue(u program.Unit) swapexec.Queue { return m.swap.Queue(u) }

// Step takes one input and returns what is to be done, in order.
func (m *Machine) Step(now time.Duration, in Input) []Output {
	m.now = now
	var out []Output
	switch {
	case in.Event != nil:
		out = m.event(in.Event)
	case in.Program != nil:
		m.next, m.nextGates = in.Program, nil
		if in.Groups != nil {
			m.nextGates = newGates(in.Program, in.Groups)
			if in.Tell {
				m.nextGates.tell()
			}
		}
	case in.Granted != 0:
		out = m.granted(in.Granted, out)
	case in.Drain:
		m.drains = true
	case in.Trace != 0:
		m.traced = max(m.traced, in.Trace) // one who wanted more before gets it
	case in.Skip != 0:
		m.skip(in.Skip)
	case in.Stop:
		m.stop = true
	case in.Until != nil:
		m.until = *in.Until - m.skipped
	case in.Park != 0:
		m.parked, m.said, m.parkAt = in.Park, false, in.At
	case in.Resume:
		m.parked, m.said = 0, false
	case in.Checkpoint:
		if !m.takes() {
			m.wanted, m.takeAt = true, in.At
		}
	case in.Forgo != 0:
		m.without = max(m.without, in.Forgo)
	}
	return m.advance(out)
}

// event records an ended command and completes the oldest section when it was its last.
func (m *Machine) event(e *device.Event) []Output {
	for _, r := range m.runs {
		if r.awaits(e) {
			m.swap.Ended(&r.section.Commands[e.Index])
			r.events[e.Index] = *e
			r.left--
			if r.gates != nil {
				m.passes(r, e.Index)
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
	return slices.ContainsFunc(m.runs, func(r *run) bool { return r.issued+r.left > len(r.section.Commands) })
}

// complete takes finished sections off the front.
func (m *Machine) complete() []Output {
	var out []Output
	for len(m.runs) > 0 && m.runs[0].left == 0 {
		r := m.runs[0]
		m.runs, m.passed = m.runs[1:], true
		begin, gated := m.begin, []time.Duration(nil)
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
		if m.traced > 0 {
			out = append(out, Output{Trace: &Trace{Program: m.program, Section: r.section,
				Iteration: r.iteration + m.skipped, Begin: begin, Events: r.events, Gates: gated}})
			if gated != nil {
				m.traced--
			}
		}
		m.before = r.events
		m.last = max(m.last, latest(r.events))
	}
	return out
}

// advance goes through the states as far as it can without waiting.
func (m *Machine) advance(out []Output) []Output {
	for {
		switch m.state {
		case Home:
			out = m.snapshot(out)
			if m.over() {
				m.state = Finished
				return append(m.leave(out), Output{Finished: true})
			}
			if m.next == nil {
				m.next, m.nextGates = m.program, m.gates // after a rest it goes on as before
			}
			if m.parks() && !m.said {
				m.said = true
				out = append(out, Output{Parked: m.parked})
			}
			if m.rests = m.rests || m.pauses(); m.next == nil || m.pauses() {
				return m.leave(out)
			}
			var admitted bool
			if out, admitted = m.admitted(out); !admitted {
				return out
			}
			if m.plans == 0 || m.rests {
				m.departed, m.rests = m.now, false
			} else if m.joins != nil {
				m.departed += m.now - m.asked
			}
			if m.next != m.program {
				m.plans++
			}
			m.program, m.gates, m.next, m.nextGates = m.next, m.nextGates, nil, nil
			out = m.depart(append(out, Output{Load: m.program}))
		case Training:
			r := m.partial()
			if r == nil && (m.next != nil || m.stop || m.drains || m.parks() ||
				m.issued >= min(m.iterations, m.until) ||
				m.due() && !m.aside() && (m.issued > m.left || m.takeAt > 0)) {
				m.state, m.want = Draining, nil
				continue
			}
			if r == nil && (m.issued-m.ended == window || m.holds()) {
				return out
			}
			section := &m.program.Body
			if m.due() && m.aside() {
				section = &m.program.Snapshot
			}
			if r != nil {
				section = r.section
			}
			if m.gates != nil && m.gates.asks {
				return m.asks(out, section)
			}
			m.wanted = m.wanted && section == &m.program.Body
			out = m.issue(out, section, m.issued, false)
			m.issued++
		case Draining:
			if len(m.runs) > 0 {
				return out
			}
			if m.state = Epilogue; m.ended > m.left {
				m.departed = m.last
			}
			out = m.issue(out, &m.program.Epilogue, m.issued, true)
		case Epilogue:
			if len(m.runs) > 0 {
				return out
			}
			m.last = max(m.last, m.departed) // without a command on the way out and back
			m.away += m.last - m.departed
			m.departed, m.state = m.last, Home
			if m.due() && m.gates == nil {
				out = m.snapshot(out)
				if m.next == nil && !m.over() && !m.pauses() {
					out = m.depart(out) // with the arena and the program that it has
					continue
				}
			}
			m.rests, m.drains = m.drains, false
			out = m.leave(append(out, Output{Home: true}))
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

// over reports whether a job in Home has nothing more to train.
func (m *Machine) over() bool { return m.stop || m.ended >= m.iterations }

// pauses reports whether a job in Home is to stay there for now.
func (m *Machine) pauses() bool { return m.parks() || m.ended >= m.until }

// parks reports whether the job is to rest as soon as what it has begun is complete.
func (m *Machine) parks() bool { return m.parked != 0 && m.issued+m.skipped >= m.parkAt }

// due reports whether a snapshot is to be taken before the next iteration begins.
func (m *Machine) due() bool { return m.wanted && m.issued+m.skipped >= m.takeAt }

// holds reports whether the next iteration may not begin, since the state before it is to be taken and there is no room
// for that yet.
func (m *Machine) holds() bool {
	at := m.issued + m.skipped
	return m.every > 0 && at%m.every == 0 && at > m.without && !m.due()
}

// Begun returns how many iterations the device was given, and those before the job began. One that the lease was asked
// for counts.
func (m *Machine) Begun() int {
	begun := m.issued + m.skipped
	if m.want != nil && m.partial() == nil {
		begun++
	}
	return begun
}

// snapshot has the state of a job in Home taken if that is wanted.
func (m *Machine) snapshot(out []Output) []Output {
	if m.due() {
		m.wanted, m.without = false, max(m.without, m.Iterations())
		out = append(out, Output{Snapshot: &taken{m.Iterations(), true}})
	}
	return out
}

// aside reports whether the program takes snapshots while the job trains.
func (m *Machine) aside() bool { return len(m.program.Snapshot.Commands) > 0 }

// takes reports whether a snapshot section is in flight.
func (m *Machine) takes() bool {
	return slices.ContainsFunc(m.runs, func(r *run) bool { return r.section == &m.program.Snapshot })
}

// depart leaves Home by the program that is loaded. Bodies follow the prologue at once: their commands wait for what
// they use of it.
func (m *Machine) depart(out []Output) []Output {
	m.state, m.left, m.before = Training, m.ended, nil
	if m.gates != nil {
		m.held = m.gates.Base
		out = append(out, Output{Hold: &hold{m.held}})
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
	r := &run{section: s, iteration: iteration, events: make([]device.Event, len(s.Commands)), left: len(s.Commands)}
	m.runs = append(m.runs, r)
	return r
}

func latest(events []device.Event) time.Duration {
	var end time.Duration
	for _, e := range events {
		end = max(end, e.End)
	}
	return end
}
