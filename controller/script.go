package controller

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"tensile/controller/fleet"
	"tensile/controller/learn"
	"tensile/controller/memory"
	"tensile/controller/plans"
	"tensile/graph"
	"tensile/graph/text"
	"tensile/scheduler/planner"
	"tensile/wire"
)

// A script is a job that trains in the process which has submitted it: its executor is started with it, and takes no
// other job. It is admitted with a claim: a graph of which only the size of its memory is known. The graph that it
// records takes the place of that one (wire.SetGraph), and it is planned for again. Beside its arena it has what it
// holds and what its allocator reserves, as it reports. So it has its whole claim for itself under any memory sharing.

// checkScript returns why a script cannot be taken. nil: it can.
func checkScript(s *wire.Spec) error {
	switch {
	case s.Checkpoint != wire.Interval{} || s.Restarts > 0 || s.From != "":
		return fmt.Errorf("job %s is a script, which takes its own checkpoints and is started by who joins it: leave "+
			"checkpoints and restarts out", s.Name)
	case s.Iterations != 0 || s.Save != "" || s.Weights != "" || s.Data != "":
		return fmt.Errorf("job %s is a script, whose iterations, data and weights are its own: leave them out", s.Name)
	}
	return nil
}

// giveScriptExecutor gives a script its executor, which joins by itself, when the job is taken.
func (m *Machine) giveScriptExecutor(j *job) {
	j.record.Incarnation = 1
	name := fleet.NameFor(j.record.Order, 1)
	j.record.SetExecutor(name)
	m.executors[name] = fleet.New(name, j.record.On, fleet.ForScript, m.storedOrders[name], m.now)
	m.deliverGraph(j)
}

// deliverGraph stores the graph of a script where its executor finds it.
func (m *Machine) deliverGraph(j *job) {
	m.emit(Output{Graph: &Delivery{Executor: j.record.Executor, Job: j.record.Spec.Name, ID: j.record.Spec.ID,
		Graph: j.graph}})
}

// recordedProfile is the profile of a script with the latencies that were recorded.
func recordedProfile(latency []time.Duration) *planner.Profile {
	return &planner.Profile{Latency: latency}
}

// setGraph has a script planned for with another graph, under its present claim.
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
	j.graph, j.profile, j.teacher = to.Graph, recordedProfile(to.Latency), learn.Teacher{}
	j.iterationTime, j.reportsSincePlan, j.progress.layout, j.record.Unplanned = 0, 0, nil, ""
	j.measureHome()
	j.domain.initLatencies(j)
	j.plannedLatency = slices.Clone(j.latency)
	m.deliverGraph(j)
	if !m.usesGraph(before) {
		m.drops = append(m.drops, Output{Drop: &Drop{Graph: before}})
	}
	j.domain.pending.mandatory, j.domain.pending.replan = true, newReason(Recorded, "job %s has recorded what it does",
		j.record.Spec.Name)
	return nil
}

// recordUnplanned records that there is no plan for what a script has recorded: it trains on without one.
func (m *Machine) recordUnplanned(j *job, why *plans.NoPlan) {
	last := j.newestLayout()
	if last == nil || !j.isStale(last) || !j.canChangePlan() {
		return
	}
	line := fmt.Sprintf("without a plan it takes %s: %s; raise the budget (tensile device budget), stop or park other "+
		"jobs, or take a smaller batch", j.unplannedBytes(), text.Line(why.Why, maxWhy))
	if j.record.Unplanned != line {
		j.record.Unplanned, m.changed = line, true
		m.tell(j, Event{Kind: Troubled, Detail: line})
	}
}

// maxWhy is how many bytes a script is told of the reason why there is no plan.
const maxWhy = 300

// unplannedBytes is what a script has of the device while it trains without a plan: what its graph needs with all that
// it holds beside that, or what its allocator was seen to have.
func (j *job) unplannedBytes() graph.Bytes {
	need := j.scriptNeed + j.deviceExtra()
	if s := j.record.Script; s != nil && s.Plan == 0 {
		need = max(need, s.Touched)
	}
	return memory.WholePages(need, j.leasePage)
}

// deviceExtra is what a script is to have on the device beside the arena of a new plan: what it holds, and the reserve
// of its allocator.
func (j *job) deviceExtra() graph.Bytes { return j.record.Spec.Held + j.allocatorReserve() }

// allocatorReserve is what a script's allocator has beyond its plans.
func (j *job) allocatorReserve() graph.Bytes {
	if j.record.Script == nil {
		return 0
	}
	return j.record.Script.Reserve
}

// isStale reports whether a layout is for a graph that the job had before.
func (j *job) isStale(l *layout) bool {
	return j.record.Spec.Script && l.Wire.Plan.Graph != j.record.Spec.Graph
}

// orderedSpec is the job as its executor is to have it. A script that has recorded another graph keeps the graph of the
// layout that it was granted last until it is granted one for the new graph.
func (j *job) orderedSpec() wire.Spec {
	spec := j.record.Spec
	for _, l := range j.layouts {
		if l.Epoch() == j.record.Granted && j.isStale(l) {
			spec.Graph = l.Wire.Plan.Graph
		}
	}
	return spec
}
