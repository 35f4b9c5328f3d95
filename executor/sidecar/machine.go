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
	Message external.Message // what the script has said
	Planned *Planned
	Stop    bool // the script is to end
	Closed  bool // the script has closed its end, or is dead
}

// Output is what is to be done: exactly one of the fields is set.
type Output struct {
	// Send is a message for the script.
	Send external.Message
	// Plan asks for a plan.
	Plan *Errand
	// Note is a line for people.
	Note string
	// Fail closes the connection. Nothing follows it.
	Fail error

	// of a Guest alone:

	// Start starts the command. This and the following fields are of a Guest only.
	Start bool
	// Event is for whoever has opened the job.
	Event *executor.Event
	// Record has the job planned for by this graph, whose number is 0 if it is a claim.
	Record *external.Recorded
	// Lease is for the lease of the device's memory.
	Lease *lease.Input
}

// Errand asks for a plan of a recorded graph.
type Errand struct {
	Number  int // the number of the graph
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
	ends  bool // it is to end
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
		err = m.handleMessage(in.Message)
	case in.Planned != nil:
		m.handlePlanned(in.Planned)
	case in.Stop:
		if m.ends = true; m.device != nil { // else it is told when it says hello
			m.emit(Output{Send: external.Stop{}})
		}
	case in.Closed:
		m.handleClosed()
	}
	if err != nil {
		m.over = true
		m.emit(Output{Fail: err})
	}
	m.askForPlan()
	return m.out
}

// handleMessage handles a message of the script.
func (m *Machine) handleMessage(message external.Message) error {
	if err := m.checkOrder(message); err != nil {
		return err
	}
	switch s := message.(type) {
	case external.Hello:
		m.handleHello(&s)
		m.sendPlan(external.Plan{Strict: m.limit > 0 && !m.terms.Anyway}, nil)
		if m.ends {
			m.emit(Output{Send: external.Stop{}})
		}
	case external.Recorded:
		if err := m.handleRecorded(&s); err != nil {
			return err
		}
		if need := external.Need(s.Graph) + s.Held; m.terms.Share > 0 {
			m.limit = max(m.limit, graph.Bytes(m.terms.Share*float64(need)), 1)
			m.summary.Limit = m.limit
			m.addNote("it needs %s, and may have %s", need, m.limit)
		}
		m.requestPlan(s.Number)
	case external.Applied:
		_, err := m.handleApplied(&s)
		return err
	case external.Iteration:
		return m.countIteration(&s)
	case external.Passive:
		if m.handlePassive(&s) {
			m.due = nil
		}
	case external.Parked:
		return errors.New("it is parked, and was not told to")
	case external.End:
		m.handleEnd(&s)
	}
	return nil
}

// sendPlan sends the script a plan of some steps, within the limit.
func (m *Machine) sendPlan(p external.Plan, steps []graph.OpID) {
	p.Limit = m.limit
	m.send(p, sent{steps: steps})
}

// requestPlan adds a graph to those that are to be planned.
func (m *Machine) requestPlan(number int) {
	if !slices.Contains(m.due, number) {
		m.due = append(m.due, number)
	}
}

// countIteration takes what an iteration took. If the reserve does not fit beside the plan, a lower one is asked for.
func (m *Machine) countIteration(i *external.Iteration) error {
	p, err := m.handleIteration(i)
	if err != nil || p == nil || p.followed == 1 {
		return err
	}
	m.countExceeded(i)
	newest := !slices.ContainsFunc(m.sent[i.Plan:], func(later sent) bool {
		return later.graph == p.graph || later.graph == 0
	})
	over := m.limit > 0 && p.bytes+m.summary.Reserve > m.limit
	if newest && p.graph > 0 && (over || m.hasDrifted(p, i.Steps)) {
		m.requestPlan(p.graph)
	}
	return nil
}

// countExceeded counts the iterations by a plan that had more than the limit, and says so of the first.
func (m *Machine) countExceeded(i *external.Iteration) {
	if m.limit == 0 || i.Reserved <= m.limit {
		return
	}
	if m.summary.Over++; m.summary.Over == 1 {
		m.addNote("iteration %d had %s, MORE THAN THE LIMIT of %s, by memory that no op shows; later plans are made "+
			"lower by as much, if they can be", i.Iteration, i.Reserved, m.limit)
	}
}

const (
	enough    = 8   // reports after which latencies may have a plan made again
	threshold = 0.2 // the part of an iteration by which they must differ for that
	alpha     = 0.25
)

// hasDrifted takes what the steps of a plan took, and reports whether ops now take so much longer or shorter than the
// plan was made for that another is wanted.
func (m *Machine) hasDrifted(p *sent, took []time.Duration) bool {
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

// askForPlan asks for the next plan, unless one is being made or was refused within no more memory.
func (m *Machine) askForPlan() {
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
	m.emit(Output{Plan: &Errand{Number: r.Number, Graph: r.Graph, Latency: r.Latency, Held: r.Held, Device: *m.device,
		Budget: budget}})
}

// handlePlanned handles the answer to an Errand.
func (m *Machine) handlePlanned(p *Planned) {
	m.asked = false
	r := m.graphs[p.Number-1]
	if p.Err == nil {
		lines := p.Lines
		lines.Graph, r.planned = p.Number, true
		m.sendPlan(lines, p.Steps)
		return
	}
	r.refused = p.Budget
	if r.planned { // the plan that it has stays
		m.addNote("no lower plan: %v", p.Err)
		return
	}
	why := fmt.Sprintf("%v; raise --memory, or %s", p.Err, remedy(p.Err))
	switch {
	case slices.ContainsFunc(m.graphs, func(r *shape) bool { return r.planned }): // those of the others stay
		m.addNote("no plan for iterations of kind %d, which train WITHOUT A LIMIT: %s", p.Number, why)
	case m.terms.Anyway:
		m.addNote("no plan, so it trains on WITHOUT A LIMIT: %s", why)
		m.send(external.Plan{Why: reasonLine(why)}, sent{})
	default:
		m.summary.Unmet = reasonLine(why)
		m.addNote("no plan, so the script ends before its next step (--anyway has it train on without a limit): %s",
			why)
		m.sendPlan(external.Plan{Why: reasonLine(why)}, nil)
		m.emit(Output{Send: external.Stop{}})
	}
}

// ofLists are the ops of optimizers that take several parameters, or one with its gradient and its state, at once.
var ofLists = regexp.MustCompile(`aten\._(foreach|fused_(adam|adamw|sgd|adagrad))_`)

// remedy is what else helps than a higher limit.
func remedy(err error) string {
	if ofLists.MatchString(err.Error()) {
		return "make the optimizer with foreach=False (and not fused=True), so that an op takes fewer tensors"
	}
	return "take a smaller batch"
}

// reasonLine returns a reason as a message can have it.
func reasonLine(why string) string {
	const most = 1 << 10
	text := []rune(why)
	for i, r := range text {
		if r < ' ' || r == 0x7f {
			text[i] = ' '
		}
	}
	return string(text[:min(len(text), most)])
}
