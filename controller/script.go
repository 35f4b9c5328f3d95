package controller

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"tensile/graph"
	"tensile/graph/text"
	"tensile/scheduler/planner"
	"tensile/wire"
)

// A script is a job that trains in the process which has submitted it: its executor is started with it, and is its
// alone. It is admitted by a claim, a graph of which nothing is known but how many bytes it makes; what it records
// takes the place of that graph (wire.SetGraph), and it is planned for again. Beside its arena it has what it holds and
// what its allocator reserves, as it says itself; so under any memory sharing its claim is one for itself.

// refusesScript is why a script cannot be taken; nil: it can.
func refusesScript(s *wire.Spec) error {
	switch {
	case s.Checkpoint != wire.Interval{} || s.Restarts > 0 || s.From != "":
		return fmt.Errorf("job %s is a script, which takes its own checkpoints and is started by who joins it: leave "+
			"checkpoints and restarts out", s.Name)
	case s.Iterations != 0 || s.Save != "" || s.Weights != "" || s.Data != "":
		return fmt.Errorf("job %s is a script, whose iterations, data and weights are its own: leave them out", s.Name)
	}
	return nil
}

// settle gives a script its executor, which is to join by itself, when the job is taken.
func (m *Machine) settle(j *job) {
	j.record.Incarnation = 1
	j.record.SetExecutor(fmt.Sprintf("x%d", j.record.Order))
	x := j.record.Executor
	m.executors[x] = &executor{name: x, own: true, script: true, heard: m.now, orders: m.stored[x], domain: j.domain}
	m.hand(j)
}

// hand has the executor of a script find its graph.
func (m *Machine) hand(j *job) {
	m.say(Output{Graph: &Delivery{Executor: j.record.Executor, Job: j.record.Spec.Name, ID: j.record.Spec.ID,
		Graph: j.graph}})
}

// profileOf is what the ops of a script take, as it was recorded.
func profileOf(latency []time.Duration) *planner.Profile { return &planner.Profile{Latency: latency} }

// setGraph has a script planned for by another graph, under the claim that it has.
func (m *Machine) setGraph(j *job, q *wire.Request, to *Submission) error {
	switch s := &j.record.Spec; {
	case !s.Script:
		return fmt.Errorf("job %s is no script: its graph stays as it is", s.Name)
	case to == nil || to.Graph == nil || len(to.Latency) != len(to.Graph.Ops) || !to.Graph.Opaque():
		return errors.New("what was recorded is not in the store: hand it over again")
	case q.Graph == s.Graph:
		return nil
	}
	before := j.record.Spec.Graph
	j.record.Spec.Graph, j.record.Spec.Held, j.record.Spec.Least = q.Graph, q.Held, q.Least
	j.graph, j.profile, j.lessons = to.Graph, profileOf(to.Latency), nil
	j.pace, j.reports, j.progress.layout, j.record.Unplanned = 0, 0, nil, ""
	j.findHome()
	j.domain.expect(j)
	j.assumed = slices.Clone(j.latency)
	m.hand(j)
	if !m.uses(before) {
		m.drops = append(m.drops, Output{Drop: &Drop{Graph: before}})
	}
	j.domain.want.must, j.domain.want.better = true, because(Recorded, "job %s has recorded what it does",
		j.record.Spec.Name)
	return nil
}

// said takes down what the allocator of a script has. If that is more than was reckoned with, all are planned for
// again.
func (m *Machine) said(j *job, a *wire.Allocated) {
	if a == nil || !j.record.Spec.Script {
		return
	}
	before, claim, d := j.reserve(), j.claim(), j.domain
	m.changed = m.changed || j.record.Script == nil || before != a.Reserve
	j.record.Script = a
	m.changed = m.changed || j.claim() != claim
	if j.reserve() > before && d.overfull() {
		d.want.must, d.want.better = true, because(Memory, "the allocator of job %s has %s beyond its plan",
			j.record.Spec.Name, a.Reserve)
	}
}

// unplanned takes down that there is no plan for what a script has recorded: it trains on without one.
func (m *Machine) unplanned(j *job, why *NoPlan) {
	last := j.newest()
	if last == nil || !j.stale(last) || !j.goesOn() {
		return
	}
	line := fmt.Sprintf("without a plan it takes %s: %s; raise the budget (tensile budget), stop or park other jobs, "+
		"or take a smaller batch", j.plain(), text.Line(why.Why, maxWhy))
	if j.record.Unplanned != line {
		j.record.Unplanned, m.changed = line, true
		m.event(Event{Kind: Troubled, Job: j.record.Spec.Name, Why: line})
	}
}

// maxWhy is how many bytes of the reason why there is no plan a script is told.
const maxWhy = 300

// plain is what a script has of the device while it trains without a plan: what its graph needs with all that it holds
// beside that, or what its allocator was seen to have.
func (j *job) plain() graph.Bytes {
	need := j.need + j.beyond()
	if s := j.record.Script; s != nil && s.Plan == 0 {
		need = max(need, s.Touched)
	}
	return j.pages(need)
}

// beyond is what a script is to have on the device beside the arena of a new plan: what it holds, and its reserve.
func (j *job) beyond() graph.Bytes { return j.record.Spec.Held + j.reserve() }

// reserve is what a script's allocator has beyond its plans.
func (j *job) reserve() graph.Bytes {
	if j.record.Script == nil {
		return 0
	}
	return j.record.Script.Reserve
}

// pages is what a lease counts for so many bytes.
func (j *job) pages(bytes graph.Bytes) graph.Bytes {
	if j.page == 0 {
		return bytes
	}
	return (bytes + j.page - 1) / j.page * j.page
}

// stale reports whether a layout is for a graph that the job had before.
func (j *job) stale(l *layout) bool {
	return j.record.Spec.Script && l.Wire.Plan.Graph != j.record.Spec.Graph
}

// ordered is the job as its executor is to have it. A script that has recorded something else keeps the graph of the
// layout that it was granted last until it is granted one for the new graph.
func (j *job) ordered() wire.Spec {
	spec := j.record.Spec
	for _, l := range j.layouts {
		if l.epoch() == j.record.Granted && j.stale(l) {
			spec.Graph = l.Wire.Plan.Graph
		}
	}
	return spec
}
