package draft

import (
	"slices"
	"testing"
	"time"

	"tensile/graph"
	"tensile/graph/autodiff"
	"tensile/models"
	"tensile/scheduler"
)

// threeLayers is the graph of each of two replicas, planned for by ops that take a microsecond, and all-reduces that
// take others.
func threeLayers(t *testing.T, reduce time.Duration) *Session {
	t.Helper()
	g, err := models.Build("mlp", models.Config{Image: 5, Batch: 4, Thin: 16})
	if err != nil {
		t.Fatal(err)
	}
	if g, err = autodiff.Replicate(g, 2); err != nil {
		t.Fatal(err)
	}
	j := scheduler.Job{Name: "a", Graph: g}
	for _, op := range g.Ops {
		j.Latency = append(j.Latency, time.Microsecond)
		if op.Kind == graph.AllReduce {
			j.Latency[op.ID] = reduce
		}
	}
	return opened(scheduler.Request{Jobs: []scheduler.Job{j}, Align: 1})
}

// The updates of a replica stay behind all other ops, and come in the order in which their gradients are reduced.
func TestUpdatesOfReplicas(t *testing.T) {
	s := threeLayers(t, 0)
	g := s.Request.Jobs[0].Graph
	var reduced, updated []graph.StorageID // gradients
	for _, id := range s.EarlyUpdates(0) {
		op := &g.Ops[id]
		switch {
		case op.Phase == graph.Optimize:
			updated = append(updated, g.Tensors[op.Inputs[1]].Storage)
		case len(updated) > 0:
			t.Errorf("%s comes behind an update", op.Name)
		case op.Kind == graph.AllReduce:
			reduced = append(reduced, g.Tensors[op.Inputs[0]].Storage)
		}
	}
	if !slices.Equal(reduced, updated) {
		t.Errorf("gradients are reduced in the order %v and read by updates in the order %v", reduced, updated)
	}
}

// An iteration without a plan takes as long as its ops while the all-reduces fit beside them, and as the network from
// the first gradient on, with the last update behind it, where that is what takes long.
func TestTimeOfReplicas(t *testing.T) {
	fast, slow := threeLayers(t, 0), threeLayers(t, time.Second)
	g := fast.Request.Jobs[0].Graph
	var reductions, before, ops time.Duration
	for _, op := range g.Ops {
		if op.Kind == graph.AllReduce {
			reductions++
			continue
		}
		if ops++; reductions == 0 {
			before = ops
		}
	}
	if got, want := fast.UnplannedTime(0), ops*time.Microsecond; got != want {
		t.Errorf("with a fast network %v, want %v", got, want)
	}
	// the graph updates the first layer first, whose bias is reduced last
	updates := slices.IndexFunc(g.Ops, func(op graph.Op) bool { return op.Phase == graph.Optimize })
	behind := time.Duration(len(g.Ops) - updates - 1)
	want := (before+behind)*time.Microsecond + reductions*time.Second
	if got := slow.UnplannedTime(0); got != want {
		t.Errorf("with a slow network %v, want %v", got, want)
	}
	if got, want := slow.Serial(0), ops*time.Microsecond+reductions*time.Second; got != want {
		t.Errorf("one after the other %v, want %v", got, want)
	}
}
