package controller

import (
	"slices"
	"testing"
	"time"

	"tensile/controller/plans"
	"tensile/graph"
	"tensile/wire"
)

// tightJob is a controller with one job that trains in less than it would like, nil if there is no such plan.
func tightJob(t *testing.T, seed uint64) (*world, *job) {
	w := calmWorld(t, seed, 0)
	g := w.submit("a", endless)
	w.run(3)
	tight := w.recordOf("a").Arena * 8 / 10
	w = calmWorld(t, seed, tight)
	w.graphs[g.Digest()] = g
	w.step(Input{Submit: []Submission{{Spec: wire.Spec{Name: "a", Graph: g.Digest(), Iterations: endless}, Graph: g}}})
	w.run(3)
	if j := w.machine.findJob("a"); j != nil && j.record.State == wire.JobRunning {
		return w, j
	}
	return nil, nil
}

// answerRequest is the answer to the plan request that a machine has after an input. nil: it has none.
func (w *world) answerRequest(in Input) *plans.Result {
	w.clock += time.Minute // whatever rest there was is over
	for _, o := range w.machine.Step(w.clock, in) {
		if o.PlanRequest != nil {
			return plannerOf(w.machine.ownDomain.config, w.profile).Plan(w.t.Context(), o.PlanRequest)
		}
	}
	return nil
}

// New plans are adopted if they gain more, over the horizon, than the change to them takes. One that gains less is
// left.
func TestPlansRepayTheChange(t *testing.T) {
	adopted, left := 0, 0
	for seed := range uint64(25) {
		for _, horizon := range []int{1, 5, 1000} {
			w, j := tightJob(t, seed)
			if w == nil {
				break
			}
			m := w.machine
			m.ownDomain.config.Horizon = horizon
			for op := range j.latency {
				j.latency[op] /= 10 // so that copies are late
			}
			m.ownDomain.pending.replan = newReason(Drifted, "a test")
			planned := w.answerRequest(Input{Tick: &Tick{}})
			if planned.NoPlan != nil {
				break // copies that are late fit no plan of this budget
			}
			gain, transition := planned.Jobs[0].Gain, planned.Jobs[0].Transition
			if gain <= 0 || transition == 0 {
				continue
			}
			epoch := j.record.Epoch
			w.step(Input{PlanResult: planned})
			switch changed := j.record.Epoch != epoch; {
			case changed != (gain > transition):
				t.Errorf("seed %d, horizon %d: plans that gain %v with a transition of %v: adopted %v", seed, horizon,
					gain, transition, changed)
			case changed:
				adopted++
			default:
				left++
			}
		}
	}
	if t.Logf("%d plans adopted, %d left", adopted, left); adopted < 10 || left < 10 {
		t.Errorf("%d plans adopted, %d left", adopted, left)
	}
}

// Jobs are planned again when a latency has changed by more than the threshold since the last plan, and not before.
func TestThreshold(t *testing.T) {
	w, j := tightJob(t, 3)
	for seed := uint64(4); w == nil; seed++ {
		w, j = tightJob(t, seed)
	}
	m := w.machine
	m.ownDomain.config.Threshold, m.ownDomain.config.Alpha, m.ownDomain.config.SettleReports = 0.1, 1, 1
	// report has every step take its latency times a factor, from when the job was planned last.
	planned := append([]time.Duration(nil), j.latency...)
	j.plannedLatency = planned
	steps := j.newestLayout().Wire.Plan.Steps
	seen := make(map[graph.OpID]bool)
	for _, s := range steps {
		seen[s.Op] = true
	}
	if len(seen) != len(planned) {
		t.Fatalf("the plan runs %d of %d ops", len(seen), len(planned))
	}
	mixed := func(factor, other float64) { // every second step by the other factor
		r := &wire.Report{Executor: j.record.Executor, Job: "a", Incarnation: 1, Epoch: j.record.Epoch, Iteration: 50}
		for i, s := range steps {
			r.Steps = append(r.Steps, time.Duration(float64(planned[s.Op])*[2]float64{factor, other}[i%2]))
		}
		w.answerRequest(Input{Report: r})
		m.ownDomain.request = nil // no matter what came of it
	}
	report := func(factor float64) { mixed(factor, factor) }
	before := j.plannedLatency
	for _, factor := range []float64{1, 1.09, 0.91, 1.09} {
		if report(factor); !slices.Equal(j.plannedLatency, before) {
			t.Fatalf("planned again after a change by a factor of %v", factor)
		}
	}
	if report(1.12); slices.Equal(j.plannedLatency, before) {
		t.Error("not planned again after a change by a factor of 1.12")
	}
	before, planned = j.plannedLatency, append([]time.Duration(nil), j.latency...)
	steps = j.newestLayout().Wire.Plan.Steps
	if report(0.88); slices.Equal(j.plannedLatency, before) {
		t.Error("not planned again after a change by a factor of 0.88")
	}
	before, planned = j.plannedLatency, append([]time.Duration(nil), j.latency...)
	steps = j.newestLayout().Wire.Plan.Steps
	if mixed(1.2, 0.8); slices.Equal(j.plannedLatency, before) {
		t.Error("not planned again after some steps became slower and others faster")
	}
}
