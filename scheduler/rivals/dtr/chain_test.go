package dtr

import (
	"fmt"
	"math"
	"testing"
	"time"

	"tensile/graph"
	_ "tensile/internal/long" // the flag -long
	"tensile/scheduler"
)

// chain is a linear feed-forward network: n ops each way, of a millisecond and a mebibyte each. The backward op of a
// layer reads what the layer before made, and the gradient.
func chain(n int) *scheduler.Job {
	g := &graph.Graph{Name: "chain"}
	j := &scheduler.Job{Name: "chain", Graph: g}
	tensor := func(name string, role graph.Role) graph.TensorID {
		id := len(g.Tensors)
		g.Storages = append(g.Storages, graph.Storage{ID: graph.StorageID(id), Name: name, Role: role,
			Bytes: graph.MiB})
		g.Tensors = append(g.Tensors, graph.Tensor{ID: graph.TensorID(id), Name: name, Storage: graph.StorageID(id),
			Shape: graph.Shape{int(graph.MiB / graph.ElementBytes)}})
		return graph.TensorID(id)
	}
	op := func(name string, phase graph.Phase, inputs ...graph.TensorID) graph.TensorID {
		out := tensor(name, graph.Activation)
		g.Ops = append(g.Ops, graph.Op{ID: graph.OpID(len(g.Ops)), Name: name, Kind: graph.ReLU, Inputs: inputs,
			Outputs: []graph.TensorID{out}, Phase: phase, Forward: graph.NoOp})
		j.Latency = append(j.Latency, time.Millisecond)
		return out
	}
	made := []graph.TensorID{tensor("x", graph.Input)}
	for i := range n {
		made = append(made, op(fmt.Sprint("f", i), graph.Forward, made[i]))
	}
	d := made[n]
	for i := range n {
		d = op(fmt.Sprint("b", n-1-i), graph.Backward, made[n-1-i], d)
	}
	return j
}

// TestChain is the paper's theorem on linear networks (3.1): with memory for 2 sqrt(N) tensors, and a few for what an
// op works on, N ops each way take O(N) operations: at most each forward op once more.
func TestChain(t *testing.T) {
	for _, h := range []string{DTR, Eq} {
		for _, n := range []int{16, 64, 256, 1024, 4096} {
			budget := graph.Bytes(2*math.Sqrt(float64(n))+3) * graph.MiB
			steps, err := execute(chain(n), h, budget, 512, func(int) {})
			if err != nil {
				t.Errorf("%s: %d ops each way: %v", h, n, err)
				continue
			}
			if per := float64(len(steps)) / float64(2*n); per > 1.5 {
				t.Errorf("%s: %d ops each way within %v: %.3f operations per op, want 1.5 at most", h, n, budget, per)
			}
		}
	}
}
