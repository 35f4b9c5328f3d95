package sidecar

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"tensile/graph"
	"tensile/models/external"
	"tensile/plan/program"
)

// Summary is what a script came to.
type Summary struct {
	Iterations int         `json:"iterations"`
	Planned    int         `json:"planned_iterations"` // of them, followed a plan to the end
	Retried    int         `json:"retried_iterations"` // of them, did so with allocations that failed: not in Planned
	Graphs     int         `json:"graphs"`
	Plans      int         `json:"plans"`
	Limit      graph.Bytes `json:"limit_bytes"`   // 0: none
	Over       int         `json:"over_limit"`    // iterations that followed a plan and had more than the limit
	Plan       graph.Bytes `json:"plan_bytes"`    // of the largest that is the newest in force for its graph; 0: none
	Reserve    graph.Bytes `json:"reserve_bytes"` // that its allocator had beyond a plan, at most
	Claim      graph.Bytes `json:"claim_bytes"`   // both together
	Touched    graph.Bytes `json:"touched_bytes"` // that it had allocated in iterations that followed a plan, at most
	// likewise, without a plan and in the first iteration by one, which begins with what was there before
	Unplanned graph.Bytes `json:"unplanned_touched_bytes"`
	Host      graph.Bytes `json:"host_bytes"`
	Stall     int64       `json:"stall_ns"`
	Faults    int         `json:"faults"`
	Passive   string      `json:"passive,omitempty"` // why no plan is followed any more
	Unmet     string      `json:"unmet,omitempty"`   // why it cannot be within its limit, so that it was to end
	Error     string      `json:"error,omitempty"`   // with which the script ended
	Ended     bool        `json:"ended"`             // the script said so itself
}

// conversation is what each of them with a script has: what it has said, what it was sent, and what is to be done.
type conversation struct {
	device  *external.Device // nil: there was no hello
	graphs  []*shape
	sent    []sent // plans, by number from 1
	over    bool
	summary Summary
	out     []Output
}

// shape is an iteration that was recorded.
type shape struct {
	external.Recorded
	digest  graph.Digest
	latency []time.Duration // per op: as recorded, then a moving average
	reports int             // since a plan was last asked for
	planned bool            // it was given a plan, by a Machine
	refused graph.Bytes     // within which a Machine has none for it; 0: it was not refused
	follows graph.Bytes     // the plan of it that came into force last; 0: none
}

// sent is a plan that a script was given.
type sent struct {
	graph    int
	steps    []graph.OpID
	bytes    graph.Bytes
	applied  bool
	raised   bool             // the reserve was raised, as an allocation had failed beside it
	followed int              // iterations
	program  *program.Program // that it is, of a guest
}

// Summary is what the script has come to so far.
func (t *conversation) Summary() Summary {
	s := t.summary
	s.Claim = s.Plan + s.Reserve
	return s
}

// Joined reports whether the script has said hello.
func (t *conversation) Joined() bool { return t.device != nil }

func (t *conversation) say(o Output) { t.out = append(t.out, o) }

func (t *conversation) note(format string, args ...any) {
	t.say(Output{Note: fmt.Sprintf(format, args...)})
}

// turn returns an error unless a message is the first one, and hello, or a later one.
func (t *conversation) turn(m external.Message) error {
	if _, hello := m.(external.Hello); hello != (t.device == nil) {
		return errors.New("hello comes first, and once")
	}
	return nil
}

// hello takes the first message.
func (t *conversation) hello(h *external.Hello) {
	t.device = &h.Device
	t.note("%s %s on %s has joined", h.Framework, h.Release, h.Device.Name)
}

// recorded takes a graph.
func (t *conversation) recorded(r *external.Recorded) error {
	if r.Number != len(t.graphs)+1 {
		return fmt.Errorf("graph %d follows %d graphs", r.Number, len(t.graphs))
	}
	t.graphs = append(t.graphs, &shape{Recorded: *r, digest: r.Graph.Digest(),
		latency: slices.Clone(r.Latency)})
	t.summary.Graphs = r.Number
	return nil
}

// send gives the script a plan of some steps.
func (t *conversation) send(p external.Plan, s sent) {
	p.Number, s.graph, s.bytes = int64(len(t.sent)+1), p.Graph, p.Bytes
	t.sent = append(t.sent, s)
	t.say(Output{Send: p})
}

// applied takes the answer to a plan, and returns that; nil: it was refused.
func (t *conversation) applied(a *external.Applied) (*sent, error) {
	if a.Plan > int64(len(t.sent)) {
		return nil, fmt.Errorf("it has applied plan %d of %d", a.Plan, len(t.sent))
	}
	p := &t.sent[a.Plan-1]
	if a.Error != "" {
		t.note("plan %d is refused: %s", a.Plan, a.Error)
		return nil, nil
	}
	p.applied, t.summary.Plan = true, 0
	for n, s := range t.graphs {
		if p.graph == 0 || p.graph == n+1 {
			s.follows = p.bytes
		}
		t.summary.Plan = max(t.summary.Plan, s.follows)
	}
	if p.graph != 0 {
		t.summary.Plans++
		t.note("plan %d is in force after %d iterations: %s", a.Plan, a.Iteration, p.bytes)
	}
	return p, nil
}

// iterated takes what an iteration took, and returns the plan that it followed; nil: none. What its allocator had
// reserved beyond the plan, from the second iteration on, is the reserve, and a part of the plan more where allocations
// failed beside it: what they lacked is not told.
func (t *conversation) iterated(i *external.Iteration) (*sent, error) {
	s := &t.summary
	if i.Graph > len(t.graphs) || i.Plan > int64(len(t.sent)) {
		return nil, fmt.Errorf("iteration %d is of graph %d of %d, by plan %d of %d", i.Iteration, i.Graph,
			len(t.graphs), i.Plan, len(t.sent))
	}
	s.Iterations, s.Host, s.Faults = i.Iteration, max(s.Host, i.Host), s.Faults+i.Faults
	s.Stall += int64(i.Stall)
	if i.Plan == 0 {
		s.Unplanned = max(s.Unplanned, i.Touched)
		return nil, nil
	}
	p := &t.sent[i.Plan-1]
	if !p.applied || p.graph != i.Graph || len(i.Steps) > 0 && len(i.Steps) != len(p.steps) {
		return nil, fmt.Errorf("iteration %d of graph %d with %d steps cannot have followed plan %d", i.Iteration,
			i.Graph, len(i.Steps), i.Plan)
	}
	if i.Retries > 0 {
		s.Retried++
	} else {
		s.Planned++
	}
	if p.followed++; p.followed == 1 { // it began with what was there without the plan
		s.Unplanned = max(s.Unplanned, i.Touched)
		return p, nil
	}
	s.Touched = max(s.Touched, i.Touched)
	s.Reserve = max(s.Reserve, i.Reserved-p.bytes)
	if i.Retries > 0 && !p.raised {
		p.raised = true
		s.Reserve += max(1, p.bytes/32)
	}
	return p, nil
}

// passive takes that no plan is followed, and reports whether that is so from now on.
func (t *conversation) passive(p *external.Passive) bool {
	if p.Always {
		t.summary.Passive = p.Why
		t.note("no plan is followed any more: %s", p.Why)
	}
	return p.Always
}

// end takes the last message.
func (t *conversation) end(e *external.End) {
	t.over = true
	t.summary.Ended, t.summary.Error = true, e.Error
}

// closed takes that the script has closed its end.
func (t *conversation) closed() {
	t.over = true
	if t.device != nil {
		t.note("the script has gone without an end")
	}
}
