package onnx

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"tensile/internal/long"
)

// odd are numbers that files have where they mean harm.
var odd = []int64{0, 1, -1, 2, -2, 3, 7, 64, 1 << 20, 1 << 36, 1 << 40, math.MaxInt64, math.MinInt64}

// mutate changes one thing in a model: what an operator is, reads or is told, or a shape or a list of numbers.
func mutate(random *rand.Rand, m *Model) {
	g := &m.Graph
	n := &g.Nodes[random.IntN(len(g.Nodes))]
	oddly := func() int64 { return odd[random.IntN(len(odd))] }
	switch random.IntN(8) {
	case 0:
		ops := slices.Sorted(maps.Keys(operators))
		if random.IntN(2) == 0 {
			ops = slices.Sorted(maps.Keys(folds))
		}
		n.Op = ops[random.IntN(len(ops))]
	case 1:
		if len(n.Inputs) > 0 {
			n.Inputs = slices.Delete(n.Inputs, len(n.Inputs)-1, len(n.Inputs))
		}
	case 2:
		if len(n.Inputs) > 0 {
			n.Inputs[random.IntN(len(n.Inputs))] = ""
		}
	case 3: // another value
		other := &g.Nodes[random.IntN(len(g.Nodes))]
		if all := slices.Concat(other.Inputs, other.Outputs); len(all) > 0 {
			n.Inputs = append(n.Inputs, "")
			n.Inputs[random.IntN(len(n.Inputs))] = all[random.IntN(len(all))]
		}
	case 4:
		if len(n.Attributes) > 0 {
			a := &n.Attributes[random.IntN(len(n.Attributes))]
			a.Int, a.Float = oddly(), float32(oddly())
			a.Ints = append(slices.Clone(a.Ints), oddly())
			if a.Ints[random.IntN(len(a.Ints))] = oddly(); random.IntN(2) == 0 {
				a.Ints = a.Ints[1:]
			}
		}
	case 5: // another shape of as many elements, or of fewer
		if len(g.Initializers) == 0 {
			return
		}
		t := &g.Initializers[random.IntN(len(g.Initializers))]
		t.Dims = [][]int64{{int64(len(t.Raw) / types[t.Type].size)}, {0}, {1, 1, 1}, {}}[random.IntN(4)]
		if n := t.size(); n*int64(types[t.Type].size) < int64(len(t.Raw)) {
			t.Raw = t.Raw[:n*int64(types[t.Type].size)]
		}
	default: // other whole numbers
		for _, t := range m.tensors() {
			if t.Type == Int64 && len(t.Raw) >= 8 && random.IntN(6) == 0 {
				binary.LittleEndian.PutUint64(t.Raw[random.IntN(len(t.Raw)/8)*8:], uint64(oddly()))
			}
		}
	}
}

// checkMutated imports what mutations of a seed leave of one of PyTorch's files: a graph, or an error, and never a
// panic.
func checkMutated(t *testing.T, seed uint64) (imported bool) {
	random := rand.New(rand.NewPCG(seed, 5))
	text, err := os.ReadFile(filepath.Join("testdata", exported[random.IntN(len(exported))]+".onnx"))
	if err != nil {
		t.Fatal(err)
	}
	m, err := Decode(text)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if problem := recover(); problem != nil {
			panic(fmt.Sprintf("seed %d: %v", seed, problem))
		}
	}()
	for range 1 + random.IntN(4) {
		mutate(random, m)
	}
	if m.check() != nil {
		return false
	}
	_, _ = Import(m, "mutated", Options{Batch: 2, Train: true}) // what the loss does not need, too
	_, _, err = Job(m, "mutated", Training{Batch: 2})
	return err == nil
}

func TestMutated(t *testing.T) {
	imported := 0
	seeds := int(long.Rounds(300, 2000))
	for seed := range uint64(seeds) {
		if checkMutated(t, seed) {
			imported++
		}
	}
	t.Logf("%d of %d are networks still", imported, seeds)
	if imported == 0 || imported == seeds {
		t.Errorf("%d of %d are networks still", imported, seeds)
	}
}

func FuzzMutated(f *testing.F) {
	f.Add(uint64(1))
	f.Fuzz(func(t *testing.T, seed uint64) { checkMutated(t, seed) })
}
