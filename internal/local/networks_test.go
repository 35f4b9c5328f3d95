package local

import (
	"context"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tensile/device"
	"tensile/executor"
	"tensile/graph"
	"tensile/internal/smallnet"
	"tensile/models"
	"tensile/planner"
	"tensile/program"
	"tensile/task"
)

// TestEveryNetworkTrains trains every network on the cpu device at a small size, on the same few examples in every
// iteration: the loss is finite and falls, and losses and weights are the same to the bit under a plan within 60 % of
// the memory.
func TestEveryNetworkTrains(t *testing.T) {
	for _, name := range models.Names() {
		for _, engine := range []string{"gonum", "openblas"} {
			t.Run(name+"/engine="+engine, func(t *testing.T) {
				t.Parallel()
				everyNetworkTrains(t, name, engine)
			})
		}
	}
}

func everyNetworkTrains(t *testing.T, name, engine string) {
	g, err := smallnet.Build(name)
	if err != nil {
		t.Fatal(err)
	}
	if raceEnabled && len(g.Ops) > 700 {
		t.Skip("the race detector makes deep networks slow, and shallower ones go the same ways")
	}
	w := []task.Task{{Name: name, Model: name, Graph: g, Seed: 1, Data: task.Synthetic(g, 1)}}
	d := computingBy(t, engine)
	request := asked(t, w, d)
	vanilla, err := planner.Vanilla(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	train := func(policy string, budget graph.Bytes) ([]float32, map[graph.StorageID]string) {
		request.Policy, request.Budget = policy, budget
		planned, err := planner.Plan(t.Context(), request)
		if err != nil {
			t.Fatal(err)
		}
		return overfit(t, d, w[0], planned.Programs[0], budget)
	}
	losses, weights := train("none-live", 0)
	const few = 6
	var first, last float64
	for i := range few {
		first += float64(losses[i])
		last += float64(losses[len(losses)-1-i])
	}
	if !(last < 0.9*first) || math.IsInf(first, 0) {
		t.Errorf("losses %.3f do not fall", losses)
	}
	again, same := train("tensile", vanilla.Live[0]*6/10)
	if diff := cmp.Diff(losses, again); diff != "" {
		t.Errorf("losses under a plan (-plain +planned):\n%s", diff)
	}
	if diff := cmp.Diff(weights, same); diff != "" {
		t.Errorf("weights under a plan (-plain +planned):\n%s", diff)
	}
}

// overfit trains a task on its first batch and returns the losses and digests of the weights.
func overfit(t *testing.T, d *counted, work task.Task, p program.Proven, budget graph.Bytes) ([]float32,
	map[graph.StorageID]string) {
	t.Helper()
	const iterations = 24
	host := executor.NewHost(d, budget, func(*executor.Report) {})
	defer host.Close()
	losses := make([]float32, iterations)
	spec := spec(work, losses)
	feed := spec.Input
	spec.Input = func(_ int, s graph.StorageID, to device.Memory) { feed(0, s, to) }
	if err := host.Add(spec, p); err != nil {
		t.Fatal(err)
	}
	if err := host.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	weights := map[graph.StorageID]string{}
	for _, s := range work.Graph.Storages {
		if content := host.Weights(work.Name, s.ID); s.Role.Persistent() && content != nil {
			weights[s.ID] = task.Digest(content)
		}
	}
	return losses, weights
}
