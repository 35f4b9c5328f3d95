package onnx_test

import (
	"crypto/sha256"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tensile/controller/local"
	"tensile/data/weights"
	"tensile/device"
	"tensile/device/cpu"
	"tensile/graph"
	"tensile/internal/long"
	_ "tensile/internal/long" // the flag -long
	"tensile/models/onnx"
)

// Orders of the same ops train to the same losses and weights, bit by bit.
func TestOrderBits(t *testing.T) {
	d, err := cpu.New(cpu.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	alike, seeds := 0, long.Rounds(12, 60)
	for seed := range seeds {
		m := onnx.RandomModel(seed)
		var ops [2]map[string]int
		var bits [2]map[string]string
		for i, order := range []onnx.Order{onnx.InFile, onnx.DepthFirst} {
			g, contents, err := onnx.Job(m, "random", onnx.Training{Batch: 5, Order: order})
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			ops[i], bits[i] = operations(g), train(t, d, g, contents)
		}
		if cmp.Equal(ops[0], ops[1]) { // else gradients of a value are added up in another order
			alike++
			if diff := cmp.Diff(bits[0], bits[1]); diff != "" {
				t.Errorf("seed %d (-file +depth):\n%s", seed, diff)
			}
		}
	}
	t.Logf("%d of %d models have the same ops in both orders", alike, seeds)
	if alike < int(seeds)/3 {
		t.Errorf("%d of %d models have the same ops in both orders", alike, seeds)
	}
}

// operations count the ops of a graph by what they compute: kind, attributes, and what computed their inputs. An
// addition reads two in any order.
func operations(g *graph.Graph) map[string]int {
	made := make(map[graph.Version]string) // by which op, and which of its outputs
	count := make(map[string]int)
	for _, op := range g.Ops {
		var in []string
		for _, t := range op.Inputs {
			from, ok := made[g.Version(t)]
			if !ok {
				from = g.Storages[g.Tensors[t].Storage].Name
			}
			in = append(in, fmt.Sprint(from, g.Tensors[t].Offset, g.Tensors[t].Shape))
		}
		if op.Kind == graph.Add {
			slices.Sort(in)
		}
		what := fmt.Sprintf("%x", sha256.Sum256(fmt.Append(nil, op.Kind, op.Attrs, in)))
		count[what]++
		for i, t := range op.Outputs {
			made[g.Version(t)] = fmt.Sprint(what, i)
		}
	}
	return count
}

// train trains three iterations and returns the bits of losses and of what is kept.
func train(t *testing.T, d device.Device, g *graph.Graph, contents map[string][]float32) map[string]string {
	t.Helper()
	bits := make(map[string]string)
	note := func(name string, v []float32) {
		for _, x := range v {
			bits[name] += fmt.Sprintf(" %x", math.Float32bits(x))
		}
	}
	err := local.Execute(t.Context(), d, local.Execution{Graph: g, Iterations: 3,
		Init: func(s graph.Storage, to []float32) {
			if copy(to, contents[s.Name]) == 0 {
				weights.Initialise(s, 1, to)
			}
		},
		Input: func(iteration int, s graph.StorageID, to device.Memory) {
			for i := range to.Float32() {
				to.Float32()[i] = float32((i*7+iteration)%5) / 2
				if g.Storages[s].Name == "labels" {
					to.Float32()[i] = float32(i % 3)
				}
			}
		},
		Output: func(iteration int, s graph.StorageID, from []float32) {
			note(fmt.Sprintf("%s of iteration %d", g.Storages[s].Name, iteration), from)
		},
		Ended: func(s graph.Storage, content []float32) { note(s.Name, content) }})
	if err != nil {
		t.Fatal(err)
	}
	return bits
}
