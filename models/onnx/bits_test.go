package onnx_test

import (
	"crypto/sha256"
	"fmt"
	"math"
	"slices"
	"strings"
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

// A row for padding is used as it is and, as in PyTorch, no lookup moves it; what else reads the table does.
func TestPadding(t *testing.T) {
	d, err := cpu.New(cpu.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	for _, tied := range []bool{false, true} {
		var bits [2]map[string]string
		for i, row := range []int{2, 4} { // of ids 0 to 2, which are fed
			g, contents, err := onnx.Job(onnx.WithPadding(row, tied), "padded", onnx.Training{Batch: 6})
			if err != nil {
				t.Fatal(err)
			}
			bits[i] = train(t, d, g, contents)
			first := ""
			for _, v := range contents["table"] {
				first += fmt.Sprintf(" %x", math.Float32bits(v))
			}
			of := func(text string, row int) []string { return strings.Fields(text)[row*4 : row*4+4] }
			for k := range 5 {
				stays := slices.Equal(of(bits[i]["table"], k), of(first, k))
				if want := !tied && (k == row || k > 2); stays != want {
					t.Errorf("tied %v, row %d of padding: row %d stays: %v", tied, row, k, stays)
				}
			}
		}
		losses := 0
		for name, first := range bits[0] {
			if strings.HasSuffix(name, " of iteration 0") {
				if losses++; first != bits[1][name] {
					t.Errorf("tied %v: %s is %s and %s", tied, name, first, bits[1][name])
				}
			}
		}
		if losses != 1 {
			t.Errorf("%d losses", losses)
		}
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
			if g.DTypes()[s] == graph.Int64 {
				for i := range to.Int64() {
					to.Int64()[i] = int64(i % 3)
				}
				return
			}
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
