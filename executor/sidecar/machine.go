package sidecar

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"time"

	"tensile/device/lease"
	"tensile/executor"
	"tensile/graph"
	"tensile/models/external"
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

	// of a Guest alone:

	Start  bool               // the command is to be started
	Event  *executor.Event    // for whoever has opened the job
	Record *external.Recorded // the job is to be planned for by this graph; its number is 0 if that is a claim
	Lease  *lease.Input       // for the lease of the device's memory
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

// Terms are within what a script is planned for alone.
type Terms struct {
	Limit  graph.Bytes // on the device; 0: none, or Share
	Share  float64     // of what the iterations need that were recorded; 0: Limit
	Anyway bool        // it trains on if it cannot be within the limit; else it ends before its next step
}

// Machine is the conversation with one script that is planned for alone.
type Machine struct {
	conversation
	terms Terms
	limit graph.Bytes // 0: none, or none yet
	due   []int       // graphs that are to be planned, in this order
	asked bool
}

// NewMachine returns the machine of a script that is planned for on these terms.
func NewMachine(t Terms) *Machine {
	return &Machine{terms: t, limit: t.Limit, conversation: conversation{summary: Summary{Limit: t.Limit}}}
}

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
		m.closed()
	}
	if err != nil {
		m.over = true
		m.say(Output{Fail: err})
	}
	m.errand()
	return m.out
}

// heard takes what the script says.
func (m *Machine) heard(message external.Message) error {
	if err := m.turn(message); err != nil {
		return err
	}
	switch s := message.(type) {
	case external.Hello:
		m.hello(&s)
		m.give(external.Plan{}, nil)
	case external.Recorded:
		if err := m.recorded(&s); err != nil {
			return err
		}
		if need := external.Need(s.Graph) + s.Held; m.terms.Share > 0 {
			m.limit = max(m.limit, graph.Bytes(m.terms.Share*float64(need)), 1)
			m.summary.Limit = m.limit
			m.note("it needs %s, and may have %s", need, m.limit)
		}
		m.want(s.Number)
	case external.Applied:
		_, err := m.applied(&s)
		return err
	case external.Iteration:
		return m.iteration(&s)
	case external.Passive:
		if m.passive(&s) {
			m.due = nil
		}
	case external.Parked:
		return errors.New("it is parked, and was not told to")
	case external.End:
		m.end(&s)
	}
	return nil
}

// give gives the script a plan of some steps, within the limit.
func (m *Machine) give(p external.Plan, steps []graph.OpID) {
	p.Limit = m.limit
	m.send(p, sent{steps: steps})
}

// want has a graph planned for.
func (m *Machine) want(number int) {
	if !slices.Contains(m.due, number) {
		m.due = append(m.due, number)
	}
}

// iteration takes what an iteration took. If the reserve does not fit beside the plan, a lower one is asked for.
func (m *Machine) iteration(i *external.Iteration) error {
	p, err := m.iterated(i)
	if err != nil || p == nil || p.followed == 1 {
		return err
	}
	m.exceeded(i)
	newest := !slices.ContainsFunc(m.sent[i.Plan:], func(later sent) bool {
		return later.graph == p.graph || later.graph == 0
	})
	over := m.limit > 0 && p.bytes+m.summary.Reserve > m.limit
	if newest && p.graph > 0 && (over || m.drifts(p, i.Steps)) {
		m.want(p.graph)
	}
	return nil
}

// exceeded counts the iterations by a plan that had more than the limit, and says so of the first.
func (m *Machine) exceeded(i *external.Iteration) {
	if m.limit == 0 || i.Reserved <= m.limit {
		return
	}
	if m.summary.Over++; m.summary.Over == 1 {
		m.note("iteration %d had %s, MORE THAN THE LIMIT of %s, by what no op tells of beside a plan; plans are made lower "+
			"by as much, if they can be", i.Iteration, i.Reserved, m.limit)
	}
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
	budget := m.limit
	if budget > 0 {
		budget = max(1, m.limit-m.summary.Reserve)
	}
	m.due = slices.DeleteFunc(m.due, func(n int) bool {
		refused := m.graphs[n-1].refused
		return refused > 0 && budget <= refused
	})
	if len(m.due) == 0 || m.asked || m.over || m.summary.Passive != "" {
		return
	}
	r := m.graphs[m.due[0]-1]
	m.due = m.due[1:]
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
	r := m.graphs[p.Number-1]
	if p.Err == nil {
		lines := p.Lines
		lines.Graph, r.planned = p.Number, true
		m.give(lines, p.Steps)
		return
	}
	r.refused = p.Budget
	if r.planned { // the plan that it has stays
		m.note("no lower plan: %v", p.Err)
		return
	}
	why := fmt.Sprintf("%v; raise --memory, or %s", p.Err, remedy(p.Err))
	switch {
	case slices.ContainsFunc(m.graphs, func(r *shape) bool { return r.planned }): // those of the others stay
		m.note("no plan for iterations of kind %d, which train WITHOUT A LIMIT: %s", p.Number, why)
	case m.terms.Anyway:
		m.note("no plan, so it trains on WITHOUT A LIMIT: %s", why)
		m.give(external.Plan{Why: line(why)}, nil)
	default:
		m.summary.Unmet = line(why)
		m.note("no plan, so the script ends before its next step (--anyway has it train on without a limit): %s", why)
		m.give(external.Plan{Why: line(why)}, nil)
		m.say(Output{Send: external.Stop{}})
	}
}

// ofAll are the ops of optimizers that work on all parameters at once.
var ofAll = regexp.MustCompile(`aten\._(foreach|fused_(adam|adamw|sgd|adagrad))_`)

// remedy is what else helps than a higher limit.
func remedy(err error) string {
	if ofAll.MatchString(err.Error()) {
		return "make the optimizer with foreach=False (and not fused=True), so that it takes one parameter at a time"
	}
	return "take a smaller batch"
}

// line is a reason as a message can have it.
func line(why string) string {
	const most = 1 << 10
	text := []rune(why)
	for i, r := range text {
		if r < ' ' || r == 0x7f {
			text[i] = ' '
		}
	}
	return string(text[:min(len(text), most)])
}
