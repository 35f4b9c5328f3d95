package sidecar

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"tensile/external"
	"tensile/graph"
	"tensile/predictor/correct"
)

// Input is what a machine is told: exactly one of the fields is set.
type Input struct {
	Message external.Message // of the script
	Planned *Planned
	Stop    bool // the script is to end
	Closed  bool // the script has closed its end, or is dead
}

// Output is what is to be done: exactly one of the fields is set.
type Output struct {
	Send external.Message
	Plan *Errand
	Note string // for people, in one line
	Fail error  // close the connection: nothing follows
}

// Errand asks for a plan of a recorded graph.
type Errand struct {
	Number  int // of the graph
	Graph   *graph.Graph
	Latency []time.Duration
	Held    graph.Bytes
	Device  external.Device
	Budget  graph.Bytes // for storages, scratch and what is held; 0: no limit
}

// Planned is what became of an errand.
type Planned struct {
	Number int
	Budget graph.Bytes
	Lines  external.Plan // without number and limit
	Steps  []graph.OpID  // the op of each step
	Err    error         // there is no plan
}

// Summary is what a script came to.
type Summary struct {
	Iterations int         `json:"iterations"`
	Planned    int         `json:"planned_iterations"` // of them, followed a plan to the end
	Graphs     int         `json:"graphs"`
	Plans      int         `json:"plans"`
	Limit      graph.Bytes `json:"limit_bytes"`   // 0: none
	Plan       graph.Bytes `json:"plan_bytes"`    // of the newest that is in force; 0: none
	Reserve    graph.Bytes `json:"reserve_bytes"` // that its allocator had beyond a plan, at most
	Claim      graph.Bytes `json:"claim_bytes"`   // both together
	Touched    graph.Bytes `json:"touched_bytes"` // that it had allocated in iterations that followed a plan, at most
	// likewise, without a plan and in the first iteration by one, which begins with what was there before
	Unplanned graph.Bytes `json:"unplanned_touched_bytes"`
	Host      graph.Bytes `json:"host_bytes"`
	Stall     int64       `json:"stall_ns"`
	Faults    int         `json:"faults"`
	Passive   string      `json:"passive,omitempty"` // why no plan is followed any more
	Error     string      `json:"error,omitempty"`   // with which the script ended
	Ended     bool        `json:"ended"`             // the script said so itself
}

// Machine is the conversation with one script.
type Machine struct {
	limit   graph.Bytes
	device  *external.Device // nil: there was no hello
	graphs  []*shape
	sent    []sent // plans, by number from 1
	refused graph.Bytes
	due     int // graph that is to be planned; 0: none
	asked   bool
	over    bool
	summary Summary
	out     []Output
}

// shape is an iteration that was recorded.
type shape struct {
	external.Recorded
	latency []time.Duration // per op: as recorded, then a moving average
	reports int             // since a plan was last asked for
}

// sent is a plan that a script was given.
type sent struct {
	graph    int
	steps    []graph.OpID
	bytes    graph.Bytes
	applied  bool
	followed int // iterations
}

// NewMachine returns the machine of a script that may have so many bytes on the device; 0: no limit.
func NewMachine(limit graph.Bytes) *Machine {
	return &Machine{limit: limit, summary: Summary{Limit: limit}}
}

// Summary is what the script has come to so far.
func (m *Machine) Summary() Summary {
	s := m.summary
	s.Claim = s.Plan + s.Reserve
	return s
}

// Joined reports whether the script has said hello.
func (m *Machine) Joined() bool { return m.device != nil }

// Step takes one input and returns what is to be done, in order.
func (m *Machine) Step(in Input) []Output {
	m.out = nil
	var err error
	switch {
	case m.over:
	case in.Message != nil:
		err = m.heard(in.Message)
	case in.Planned != nil:
		m.planned(in.Planned)
	case in.Stop && m.device != nil:
		m.say(Output{Send: external.Stop{}})
	case in.Closed:
		m.over = true
		if m.device != nil {
			m.note("the script has gone without an end")
		}
	}
	if err != nil {
		m.over = true
		m.say(Output{Fail: err})
	}
	m.errand()
	return m.out
}

func (m *Machine) say(o Output) { m.out = append(m.out, o) }

func (m *Machine) note(format string, args ...any) { m.say(Output{Note: fmt.Sprintf(format, args...)}) }

// heard takes what the script says.
func (m *Machine) heard(message external.Message) error {
	if _, hello := message.(external.Hello); hello != (m.device == nil) {
		return errors.New("hello comes first, and once")
	}
	switch s := message.(type) {
	case external.Hello:
		m.device = &s.Device
		m.note("%s %s on %s has joined", s.Framework, s.Release, s.Device.Name)
		m.send(external.Plan{}, nil)
	case external.Recorded:
		if s.Number != len(m.graphs)+1 {
			return fmt.Errorf("graph %d follows %d graphs", s.Number, len(m.graphs))
		}
		m.graphs = append(m.graphs, &shape{Recorded: s, latency: slices.Clone(s.Latency)})
		m.summary.Graphs = s.Number
		m.due, m.refused = s.Number, 0
	case external.Applied:
		return m.applied(&s)
	case external.Iteration:
		return m.iteration(&s)
	case external.Passive:
		if s.Always {
			m.summary.Passive, m.due = s.Why, 0
			m.note("no plan is followed any more: %s", s.Why)
		}
	case external.Parked:
		return errors.New("it is parked, and was not told to")
	case external.End:
		m.over = true
		m.summary.Ended, m.summary.Error = true, s.Error
	}
	return nil
}

// send gives the script a plan of some steps.
func (m *Machine) send(p external.Plan, steps []graph.OpID) {
	p.Number, p.Limit = int64(len(m.sent)+1), m.limit
	m.sent = append(m.sent, sent{graph: p.Graph, steps: steps, bytes: p.Bytes})
	m.say(Output{Send: p})
}

// applied takes the answer to a plan.
func (m *Machine) applied(a *external.Applied) error {
	if a.Plan > int64(len(m.sent)) {
		return fmt.Errorf("it has applied plan %d of %d", a.Plan, len(m.sent))
	}
	p := &m.sent[a.Plan-1]
	if a.Error != "" {
		m.note("plan %d is refused: %s", a.Plan, a.Error)
		return nil
	}
	p.applied, m.summary.Plan = true, p.bytes
	if p.graph != 0 {
		m.summary.Plans++
		m.note("plan %d is in force after %d iterations: %s", a.Plan, a.Iteration, p.bytes)
	}
	return nil
}

// iteration takes what an iteration took. What its allocator had reserved beyond the plan is the reserve: if that does
// not fit beside the plan, a lower one is asked for.
func (m *Machine) iteration(i *external.Iteration) error {
	s := &m.summary
	if i.Graph > len(m.graphs) || i.Plan > int64(len(m.sent)) {
		return fmt.Errorf("iteration %d is of graph %d of %d, by plan %d of %d", i.Iteration, i.Graph, len(m.graphs),
			i.Plan, len(m.sent))
	}
	s.Iterations, s.Host, s.Faults = i.Iteration, max(s.Host, i.Host), s.Faults+i.Faults
	s.Stall += int64(i.Stall)
	if i.Plan == 0 {
		s.Unplanned = max(s.Unplanned, i.Touched)
		return nil
	}
	p := &m.sent[i.Plan-1]
	if !p.applied || p.graph != i.Graph || len(i.Steps) > 0 && len(i.Steps) != len(p.steps) {
		return fmt.Errorf("iteration %d of graph %d with %d steps cannot have followed plan %d", i.Iteration, i.Graph,
			len(i.Steps), i.Plan)
	}
	s.Planned++
	if p.followed++; p.followed == 1 { // it began with what was there without the plan
		s.Unplanned = max(s.Unplanned, i.Touched)
		return nil
	}
	s.Touched = max(s.Touched, i.Touched)
	s.Reserve = max(s.Reserve, i.Reserved-p.bytes)
	newest := !slices.ContainsFunc(m.sent[i.Plan:], func(later sent) bool {
		return later.graph == p.graph || later.graph == 0
	})
	if newest && p.graph > 0 && (m.limit > 0 && p.bytes+s.Reserve > m.limit || m.drifts(p, i.Steps)) {
		m.due = p.graph
	}
	return nil
}

const (
	enough    = 8   // reports after which latencies may have a plan made again
	threshold = 0.2 // the part of an iteration by which they must differ for that
	alpha     = 0.25
)

// drifts takes what the steps of a plan took, and reports whether ops now take so much longer or shorter than the plan
// was made for that another is wanted.
func (m *Machine) drifts(p *sent, took []time.Duration) bool {
	if len(took) == 0 {
		return false
	}
	g := m.graphs[p.graph-1]
	g.reports++
	seen := make([]bool, len(g.latency))
	for k, op := range p.steps {
		if !seen[op] { // else it ran again
			g.latency[op] = correct.Latency(g.latency[op], took[k], alpha, false)
		}
		seen[op] = true
	}
	return g.reports >= enough && correct.Drift(g.latency, g.Latency) > threshold
}

// errand asks for what is to be planned, unless something is being planned, or within no more was refused.
func (m *Machine) errand() {
	if m.due == 0 || m.asked || m.over || m.summary.Passive != "" {
		return
	}
	r := m.graphs[m.due-1]
	budget := m.limit
	if budget > 0 {
		budget = max(1, m.limit-m.summary.Reserve)
	}
	m.due = 0
	if m.refused > 0 && budget <= m.refused {
		return
	}
	m.asked = true
	if r.reports > 0 {
		r.Latency, r.reports = slices.Clone(r.latency), 0
	}
	m.say(Output{Plan: &Errand{Number: r.Number, Graph: r.Graph, Latency: r.Latency, Held: r.Held, Device: *m.device,
		Budget: budget}})
}

// planned takes what became of an errand.
func (m *Machine) planned(p *Planned) {
	m.asked = false
	switch {
	case p.Err == nil:
		lines := p.Lines
		lines.Graph = p.Number
		m.send(lines, p.Steps)
	case m.summary.Plan > 0: // the plan that is in force stays
		m.refused = p.Budget
		m.note("no lower plan: %v", p.Err)
	default:
		m.refused = p.Budget
		m.note("no plan: %v", p.Err)
		m.send(external.Plan{Why: line(p.Err)}, nil)
	}
}

// line is an error as a message can have it.
func line(err error) string {
	const most = 1 << 10
	text := []rune(err.Error())
	for i, r := range text {
		if r < ' ' || r == 0x7f {
			text[i] = ' '
		}
	}
	return string(text[:min(len(text), most)])
}
