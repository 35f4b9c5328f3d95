package checkpoint

import (
	"fmt"
	"slices"
	"testing"

	"tensile/graph"
	_ "tensile/internal/long" // the flag -long
	"tensile/scheduler"
	"tensile/scheduler/jobtest"
)

// layered is a chain of n forward ops of a mebibyte each.
func layered(n int) *scheduler.Job {
	g := &graph.Graph{Name: "layered"}
	for i := range n + 1 {
		role := graph.Activation
		if i == 0 {
			role = graph.Input
		}
		g.Storages = append(g.Storages, graph.Storage{ID: graph.StorageID(i), Name: fmt.Sprint("a", i), Role: role,
			Bytes: graph.MiB})
		g.Tensors = append(g.Tensors, graph.Tensor{ID: graph.TensorID(i), Name: fmt.Sprint("a", i),
			Storage: graph.StorageID(i), Shape: graph.Shape{int(graph.MiB / graph.ElementBytes)}})
	}
	for i := range n {
		g.Ops = append(g.Ops, graph.Op{ID: graph.OpID(i), Name: fmt.Sprint("f", i), Kind: graph.ReLU,
			Inputs: []graph.TensorID{graph.TensorID(i)}, Outputs: []graph.TensorID{graph.TensorID(i + 1)},
			Phase: graph.Forward, Forward: graph.NoOp})
	}
	return &scheduler.Job{Name: "layered", Graph: g}
}

// The sizes of segments are those of checkpoint_sequential with sqrt(n) of them: n // segments, and the rest.
func TestSqrtN(t *testing.T) {
	for _, test := range []struct {
		layers int
		want   []int
	}{
		{0, []int{0}}, {1, []int{1}}, {3, []int{3}}, {4, []int{2, 2}}, {7, []int{3, 4}}, {9, []int{3, 3, 3}},
		{11, []int{3, 3, 5}}, {16, []int{4, 4, 4, 4}}, {19, []int{4, 4, 4, 7}},
	} {
		n := newNetwork(layered(test.layers), 512)
		var got []int
		s := n.cut(sqrtN(n))
		for k, first := range s.first {
			got = append(got, s.end(k)-first)
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%d layers: segments of %v, want %v", test.layers, got, test.want)
		}
	}
}

// TestNetworks cuts networks with and without branches. At most one storage crosses a cut, but in NASNet, whose cells
// read the two before, and what crosses stays; each op runs twice at most, again only if it is pure and of the forward
// pass; and nothing that the last segment makes is made again.
func TestNetworks(t *testing.T) {
	for _, model := range []string{"vgg16", "resnet50", "inceptionv3", "densenet121", "nasnet-mobile"} {
		r := jobtest.Network(t, model, 2)
		j := &r.Jobs[0]
		g := j.Graph
		n := newNetwork(j, r.Align)
		for name, cuts := range map[string][]int{"sqrt(n)": sqrtN(n), "every place": n.cuts()} {
			if len(cuts) < 4 || len(cuts) < 15 && model == "nasnet-mobile" {
				t.Errorf("%s, %s: %d cuts", model, name, len(cuts))
			}
			s := n.cut(cuts)
			for _, c := range cuts {
				crossing := slowCrossing(g, n.forward[:c+1], n.forward[c+1:])
				if len(crossing) > 1 && model != "nasnet-mobile" || slices.ContainsFunc(crossing,
					func(id graph.StorageID) bool { return s.dropped[id] }) {
					t.Errorf("%s, %s: %v cross the cut behind %s", model, name, crossing, g.Ops[n.forward[c]].Name)
				}
			}
			runs := make([]int, len(g.Ops))
			for _, step := range s.steps(func(int) {}) {
				op := step.Op
				if runs[op]++; runs[op] > 2 || runs[op] == 2 && (!g.Pure(op) || !s.checkpointed(s.of[op])) {
					t.Errorf("%s, %s: %s runs %d times", model, name, g.Ops[op].Name, runs[op])
				}
			}
		}
	}
}

// slowCrossing lists what some ops make and others read.
func slowCrossing(g *graph.Graph, before, after []graph.OpID) (all []graph.StorageID) {
	made := make(map[graph.StorageID]bool)
	for _, op := range before {
		for _, w := range g.Writes(op) {
			made[w.Storage] = !g.Storages[w.Storage].Role.FromHost()
		}
	}
	for _, op := range after {
		for _, r := range g.Reads(op) {
			if made[r.Storage] && !slices.Contains(all, r.Storage) {
				all = append(all, r.Storage)
			}
		}
	}
	return all
}

// The square root of a product beyond 63 bits, rounded down.
func TestIsqrt(t *testing.T) {
	for _, test := range [][3]int64{{0, 5, 0}, {2, 4, 2}, {3, 5, 3}, {1 << 40, 1 << 38, 1 << 39},
		{1 << 40, 1<<40 - 1, 1<<40 - 1}} {
		if got := isqrt(test[0], test[1]); got != test[2] {
			t.Errorf("of %d times %d: %d, want %d", test[0], test[1], got, test[2])
		}
	}
}
