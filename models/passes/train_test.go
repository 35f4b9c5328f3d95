package passes_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"tensile/data/weights"
	"tensile/device"
	"tensile/device/cpu/gemm"
	"tensile/device/cpu/kernel"
	"tensile/graph"
	"tensile/models/graphtest"
	"tensile/models/task"
)

// bits are what a graph is trained for: the outputs of all iterations, and what is kept at the end, by name.
type bits map[string][]uint32

// trained executes the ops of a graph in their order by the kernels of the cpu device, each storage in memory of its
// own, for some iterations.
func trained(t *testing.T, g *graph.Graph, iterations int) bits {
	t.Helper()
	feed := task.Task{Graph: g, Seed: 1, Data: task.Synthetic(g, 1)}.Feeder(nil)
	return run(t, g, iterations, feed, func(s graph.Storage, to []float32) { weights.Initialise(s, 1, to) })
}

// trainedRandom is trained for random graphs.
func trainedRandom(t *testing.T, g *graph.Graph, iterations int) bits {
	t.Helper()
	return run(t, g, iterations, graphtest.Input(g, 5), graphtest.Init(5))
}

func run(t *testing.T, g *graph.Graph, iterations int, feed func(int, graph.StorageID, device.Memory),
	first func(graph.Storage, []float32)) bits {
	t.Helper()
	engine := gemm.New(nil)
	memory := make([]device.Memory, len(g.Storages))
	for i, s := range g.Storages {
		if memory[i] = device.NewMemory(s.Bytes); s.Role.Persistent() {
			first(s, memory[i].Float32())
		}
	}
	at := func(id graph.TensorID) []float32 {
		tensor := g.Tensors[id]
		size := graph.StorageBytes(tensor.Shape, tensor.DType)
		return memory[tensor.Storage][tensor.Offset : tensor.Offset+size].Float32()
	}
	result := make(bits)
	keep := func(s graph.Storage) {
		for _, v := range memory[s.ID].Float32() {
			result[s.Name] = append(result[s.Name], math.Float32bits(v))
		}
	}
	for iteration := range iterations {
		for i, s := range g.Storages {
			switch {
			case s.Role == graph.Input:
				feed(iteration, s.ID, memory[i])
			case !s.Role.Persistent():
				for k := range memory[i].Float32() {
					memory[i].Float32()[k] = float32(math.NaN())
				}
			}
		}
		for i := range g.Ops {
			op := &g.Ops[i]
			c := &kernel.Call[float32]{Kind: op.Kind, Attrs: op.Attrs, InShapes: g.Shapes(op.Inputs),
				OutShapes: g.Shapes(op.Outputs), Seed: 7, Iteration: iteration, GEMM: engine}
			for _, id := range op.Inputs {
				c.In = append(c.In, at(id))
			}
			for _, id := range op.Outputs {
				c.Out = append(c.Out, at(id))
			}
			c.Scratch = make([]float32, kernel.Scratch(op.Kind, op.Attrs, c.InShapes, c.OutShapes))
			kernel.Run(c)
		}
		for _, s := range g.Storages {
			if s.Role == graph.Output {
				keep(s)
			}
		}
	}
	for _, s := range g.Storages {
		if s.Role.Persistent() {
			keep(s)
		}
	}
	return result
}

// equal fails unless both hold the same bits under the same names.
func (b bits) equal(t *testing.T, what string, want bits) {
	t.Helper()
	if len(b) != len(want) {
		t.Errorf("%s: %d storages, want %d", what, len(b), len(want))
	}
	for name, w := range want {
		if !slices.Equal(b[name], w) {
			t.Errorf("%s: %s has other bits", what, name)
		}
	}
}

func randoms(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 6)) }
