package planner_test

import (
	"errors"
	"testing"
	"time"

	"tensile/device/sim"
	"tensile/graph"
	"tensile/graph/cost"
	"tensile/models/nettest"
	"tensile/models/task"
	"tensile/scheduler"
	"tensile/scheduler/planner"
	"tensile/scheduler/policies"
)

// replica is a replica's task for a network in its small form, and a device that is one of so many.
func replica(t *testing.T, model string, replicas int) ([]task.Task, planner.Device, cost.Facts) {
	t.Helper()
	g, err := nettest.Replicas(model, replicas)
	if err != nil {
		t.Fatal(err)
	}
	facts, err := cost.Device("v100")
	if err != nil {
		t.Fatal(err)
	}
	return []task.Task{{Name: model, Model: model, Graph: g}},
		planner.Describe(sim.New(facts, sim.Options{}), planner.Roofline(facts)), facts
}

// Every policy's plans of a replica are proven, or are none because the budget is too small: none moves, repeats or
// reorders an all-reduce in a way that another replica would wait for.
func TestEveryPolicyPlansReplicas(t *testing.T) {
	for _, model := range []string{"lenet", "resnet18"} {
		tasks, on, _ := replica(t, model, 2)
		r, err := on.FirstRequest(tasks)
		if err != nil {
			t.Fatal(err)
		}
		peaks, err := planner.Vanilla(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		for _, r.Policy = range policies.Names() {
			planned := 0
			for _, percent := range []graph.Bytes{0, 90, 70} {
				r.Budget = peaks.Live[0] * percent / 100
				switch _, err := planner.Plan(t.Context(), r); {
				case err == nil:
					planned++
				case percent == 0 || !errors.Is(err, scheduler.ErrNoPlan):
					t.Errorf("%s, policy %s, budget %s: %v", model, r.Policy, r.Budget, err)
				}
			}
			if planned == 0 {
				t.Errorf("%s, policy %s: no plan", model, r.Policy)
			}
		}
	}
}

// An all-reduce is predicted to take what the network takes, whatever else predicts latencies, and goes on beside the
// other ops: an iteration takes less than the ops one after the other, and no less than the network.
func TestReplicaOverlaps(t *testing.T) {
	tasks, on, facts := replica(t, "lenet", 3)
	r, err := on.FirstRequest(tasks)
	if err != nil {
		t.Fatal(err)
	}
	r.Policy = "none-live"
	g := tasks[0].Graph
	var sum, network time.Duration
	for op, latency := range r.Jobs[0].Latency {
		sum += latency
		if o := &g.Ops[op]; o.Kind == graph.AllReduce {
			bytes := g.Tensors[o.Inputs[0]].Bytes()
			want := 3*facts.Network.Latency + facts.Network.Time(bytes)
			if latency != want {
				t.Errorf("%s takes %v, want %v: 4 hops and %s", o.Name, latency, want, bytes)
			}
			network += latency
		}
	}
	p, err := planner.Plan(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	if took := p.Timing(0).Iteration; took >= sum || took < network {
		t.Errorf("an iteration takes %v, want at least %v and less than %v", took, network, sum)
	}
}
