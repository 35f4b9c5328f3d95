package sidecar

import (
	"cmp"
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
	// Iterations is how many iterations the script has trained.
	Iterations int `json:"iterations"`
	// Planned is how many of them followed a plan to the end.
	Planned int `json:"planned_iterations"`
	// Hooks is how many iterations that followed a plan were played by hooks, without a look at ops.
	Hooks int `json:"hooks_iterations"`
	// Retried is how many of them did so with allocations that failed at first. Planned does not count them.
	Retried int `json:"retried_iterations"`
	// Why is why the first iteration that was another than the recorded ones followed no plan; "": there was none.
	Why string `json:"unplanned_why,omitempty"`
	// Need is the most that a recorded iteration needs without a plan, in bytes; 0: none was recorded.
	Need graph.Bytes `json:"need_bytes"`
	// Graphs is how many graphs were recorded.
	Graphs int `json:"graphs"`
	// Plans is how many plans the script was given.
	Plans int `json:"plans"`
	// Limit is the script's limit of device memory, in bytes; 0: there is none.
	Limit graph.Bytes `json:"limit_bytes"`
	// Over is how many iterations that followed a plan had more than the limit.
	Over int `json:"over_limit"`
	// Plan is the largest of the plans in force, the newest of each graph, in bytes; 0: there is none.
	Plan graph.Bytes `json:"plan_bytes"`
	// Largest is the most that Plan has been, in bytes; 0: there was no plan.
	Largest graph.Bytes `json:"largest_plan_bytes"`
	// Reserve is the most that the allocator has had beyond a plan, in bytes.
	Reserve graph.Bytes `json:"reserve_bytes"`
	// Claim is the sum of Plan and Reserve.
	Claim graph.Bytes `json:"claim_bytes"`
	// Touched is the most that was allocated in iterations that followed a plan, in bytes.
	Touched graph.Bytes `json:"touched_bytes"`
	// Unplanned is the most that was allocated in iterations without a plan, in bytes. The first iteration by a plan
	// counts here, because it begins with what was there before.
	Unplanned graph.Bytes `json:"unplanned_touched_bytes"`
	// Host is the most that the script had on the host, in bytes.
	Host graph.Bytes `json:"host_bytes"`
	// Stall is for how long compute waited for copies, in nanoseconds.
	Stall int64 `json:"stall_ns"`
	// Faults is how many storages were fetched because something used them while they were away.
	Faults int `json:"faults"`
	// Passive is why no plan is followed any more; "": plans are followed.
	Passive string `json:"passive,omitempty"`
	// Unmet is why the script cannot keep within its limit, so that it was told to end; "": it can.
	Unmet string `json:"unmet,omitempty"`
	// Error is the error with which the script ended; "": there was none.
	Error string `json:"error,omitempty"`
	// Ended says that the script itself has said that it ends.
	Ended bool `json:"ended"`
}

// conversation is what each of them with a script has: what it has said, what it was sent, and what is to be done.
type conversation struct {
	// device describes the script's device; nil: the script has not said hello yet.
	device *external.Device
	// graphs are the iterations that were recorded.
	graphs []*shape
	// sent are the plans that the script was given. Their numbers begin at 1.
	sent []sent
	// hooks says that the newest iteration that followed a plan was played by hooks.
	hooks bool
	// over says that the conversation has ended.
	over bool
	// summary is what the script has come to.
	summary Summary
	// out are the outputs of the present step.
	out []Output
}

// shape is an iteration that was recorded.
type shape struct {
	external.Recorded
	// digest is the graph's.
	digest graph.Digest
	// latency is how long each op takes: at first as recorded, then as a moving average.
	latency []time.Duration
	// reports is how many reports have come since a plan was last asked for.
	reports int
	// planned says that a Machine has given the script a plan for it.
	planned bool
	// refused is the memory within which a Machine has no plan for it, in bytes; 0: it was not refused.
	refused graph.Bytes
	// follows is the size of its plan that came into force last, in bytes; 0: none has.
	follows graph.Bytes
}

// sent is a plan that a script was given.
type sent struct {
	// graph is the number of the shape.
	graph int
	// steps are the ops that the plan executes.
	steps []graph.OpID
	// bytes is what the plan needs.
	bytes graph.Bytes
	// applied says that the script has taken it.
	applied bool
	// raised says that the reserve was raised because an allocation had failed beside the plan.
	raised bool
	// followed is how many iterations followed it.
	followed int
	// program is, for a guest, the program that it came from.
	program *program.Program
}

// Summary is what the script has come to so far.
func (t *conversation) Summary() Summary {
	s := t.summary
	s.Claim = s.Plan + s.Reserve
	return s
}

// Joined reports whether the script has said hello.
func (t *conversation) Joined() bool { return t.device != nil }

// Listens reports whether the script can be told to end: it has said hello and no end, and follows plans.
func (t *conversation) Listens() bool { return t.device != nil && !t.over && t.summary.Passive == "" }

func (t *conversation) emit(o Output) { t.out = append(t.out, o) }

func (t *conversation) addNote(format string, args ...any) {
	t.emit(Output{Note: fmt.Sprintf(format, args...)})
}

// checkOrder returns an error unless a message is the first one, and hello, or a later one.
func (t *conversation) checkOrder(m external.Message) error {
	if _, hello := m.(external.Hello); hello != (t.device == nil) {
		return errors.New("hello comes first, and once")
	}
	return nil
}

// handleHello handles the first message.
func (t *conversation) handleHello(h *external.Hello) {
	t.device = &h.Device
	t.addNote("%s %s on %s has joined", h.Framework, h.Release, h.Device.Name)
}

// handleRecorded handles a recorded graph.
func (t *conversation) handleRecorded(r *external.Recorded) error {
	if r.Number != len(t.graphs)+1 {
		return fmt.Errorf("graph %d follows %d graphs", r.Number, len(t.graphs))
	}
	t.graphs = append(t.graphs, &shape{Recorded: *r, digest: r.Graph.Digest(),
		latency: slices.Clone(r.Latency)})
	t.summary.Graphs = r.Number
	t.summary.Need = max(t.summary.Need, external.Need(r.Graph)+r.Held)
	return nil
}

// send gives the script a plan of some steps.
func (t *conversation) send(p external.Plan, s sent) {
	p.Number, s.graph, s.bytes = int64(len(t.sent)+1), p.Graph, p.Bytes
	t.sent = append(t.sent, s)
	t.emit(Output{Send: p})
}

// handleApplied handles the answer to a plan, and returns that plan; nil: the script has refused it.
func (t *conversation) handleApplied(a *external.Applied) (*sent, error) {
	if a.Plan > int64(len(t.sent)) {
		return nil, fmt.Errorf("it has applied plan %d of %d", a.Plan, len(t.sent))
	}
	p := &t.sent[a.Plan-1]
	if a.Error != "" {
		t.addNote("plan %d is refused: %s", a.Plan, a.Error)
		return nil, nil
	}
	p.applied, t.summary.Plan = true, 0
	for n, s := range t.graphs {
		if p.graph == 0 || p.graph == n+1 {
			s.follows = p.bytes
		}
		t.summary.Plan = max(t.summary.Plan, s.follows)
	}
	t.summary.Largest = max(t.summary.Largest, t.summary.Plan)
	if p.graph != 0 {
		t.summary.Plans++
		t.addNote("plan %d is in force after %d iterations: %s", a.Plan, a.Iteration, p.bytes)
	}
	return p, nil
}

// handleIteration takes what an iteration took, and returns the plan that it followed; nil: none. What its allocator
// had reserved beyond the plan, from the second iteration on, is the reserve, and a part of the plan more where
// allocations failed beside it: what they lacked is not told.
func (t *conversation) handleIteration(i *external.Iteration) (*sent, error) {
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
	t.hooks = i.Hooks
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
	if i.Hooks {
		s.Hooks++
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

// handlePassive handles a message that no plan is followed, and reports whether that is so from now on.
func (t *conversation) handlePassive(p *external.Passive) bool {
	if !p.Always {
		t.summary.Why = cmp.Or(t.summary.Why, p.Why)
	} else {
		t.summary.Passive = p.Why
		t.addNote("no plan is followed any more: %s", p.Why)
	}
	return p.Always
}

// handleEnd handles the last message.
func (t *conversation) handleEnd(e *external.End) {
	t.over = true
	t.summary.Ended, t.summary.Error = true, e.Error
}

// handleClosed records that the script has closed its end.
func (t *conversation) handleClosed() {
	t.over = true
	if t.device != nil {
		t.addNote("the script was killed, has crashed or has called os._exit")
	}
}
