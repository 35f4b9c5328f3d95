package local

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tensile/controller"
	"tensile/device"
	"tensile/executor"
	"tensile/graph"
	"tensile/internal/long"
	"tensile/models"
	"tensile/models/nettest"
	"tensile/models/passes"
	"tensile/models/task"
	"tensile/scheduler/planner"
)

// TestEveryNetworkTrains trains every network on the cpu device at a small size, on the same few examples in every
// iteration: the loss is finite and falls, and losses and weights are the same to the bit under a plan within 60 % of
// the memory. So are those of the graph after all passes, planned within 60 % of what that needs.
func TestEveryNetworkTrains(t *testing.T) {
	for i, name := range models.Names() {
		if !long.On() && i%4 != 0 {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			everyNetworkTrains(t, name)
		})
	}
}

func everyNetworkTrains(t *testing.T, name string) {
	g, err := nettest.Build(name)
	if err != nil {
		t.Fatal(err)
	}
	if len(g.Ops) > 2000 {
		long.Only(t)
	}
	if raceEnabled && len(g.Ops) > 700 {
		t.Skip("the race detector makes deep networks slow, and shallower ones go the same ways")
	}
	w := []task.Task{{Name: name, Model: name, Graph: g, Seed: 1, Data: task.Synthetic(g, 1)}}
	d := computing(t)
	request := asked(t, w, d)
	vanilla, err := planner.Vanilla(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	losses, weights := overfit(t, d, w, "none-live", 0)
	const few = 6
	var first, last float64
	for i := range few {
		first += float64(losses[i])
		last += float64(losses[len(losses)-1-i])
	}
	if !(last < 0.9*first) || math.IsInf(first, 0) {
		t.Errorf("losses %.3f do not fall", losses)
	}
	again, same := overfit(t, d, w, "tensile", vanilla.Live[0]*6/10)
	if diff := cmp.Diff(losses, again); diff != "" {
		t.Errorf("losses under a plan (-plain +planned):\n%s", diff)
	}
	if diff := cmp.Diff(weights, same); diff != "" {
		t.Errorf("weights under a plan (-plain +planned):\n%s", diff)
	}
	rewrittenTrains(t, d, w[0], losses, weights)
}

// rewrittenTrains trains a task after all passes, under a plan, and compares it with what came of the task before.
func rewrittenTrains(t *testing.T, d *counted, plain task.Task, losses []float32, weights map[int32]string) {
	t.Helper()
	rewritten := plain
	var err error
	if rewritten.Graph, rewritten.Passes, err = passes.Apply(plain.Graph, passes.Names()); err != nil {
		t.Fatal(err)
	}
	w := []task.Task{rewritten}
	request := asked(t, w, d)
	vanilla, err := planner.Vanilla(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	least, _ := request.WorkingSets()
	again, same := overfit(t, d, w, "tensile", max(vanilla.Live[0]*6/10, least*11/10))
	if diff := cmp.Diff(losses, again); diff != "" {
		t.Errorf("losses after passes (-plain +rewritten):\n%s", diff)
	}
	if diff := cmp.Diff(named(plain.Graph, weights), named(rewritten.Graph, same)); diff != "" {
		t.Errorf("weights after passes (-plain +rewritten):\n%s", diff)
	}
}

// named returns digests of storages by their names.
func named(g *graph.Graph, weights map[int32]string) map[string]string {
	digests := make(map[string]string)
	for s, digest := range weights {
		digests[g.Storages[s].Name] = digest
	}
	return digests
}

// overfit trains a task on its first batch and returns the losses and digests of the weights.
func overfit(t *testing.T, d *counted, w []task.Task, policy string, budget graph.Bytes) ([]float32, map[int32]string) {
	t.Helper()
	return overfitBy(t, d, w, controller.Config{Policy: policy, Budget: budget})
}

// overfitBy is overfit with other settings of planning too.
func overfitBy(t *testing.T, d *counted, w []task.Task, c controller.Config) ([]float32, map[int32]string) {
	t.Helper()
	c.NoReplan = true
	first := func(k task.Task, iterations int, loss func(int, float32)) executor.Spec {
		spec := executor.SpecOf(k, iterations, loss)
		feed := spec.Input
		spec.Input = func(_ int, s graph.StorageID, to device.Memory) { feed(0, s, to) }
		return spec
	}
	o := Options{Config: c, Iterations: 24}
	run, err := train(t.Context(), d, on(d), w, o, first)
	if err != nil {
		t.Fatal(err)
	}
	return run.Jobs[0].Losses, run.Jobs[0].Weights
}
