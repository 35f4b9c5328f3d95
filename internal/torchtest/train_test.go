package torchtest

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"unsafe"

	"tensile/device"
	"tensile/device/cpu/gemm"
	"tensile/device/cpu/kernel"
	"tensile/graph"
	"tensile/models/task"
)

// training is a graph on its way through iterations, an op after the other on the cpu device's kernels.
type training[T gemm.Float] struct {
	task     task.Task
	engine   *gemm.Engine
	types    []graph.DType   // by storage
	contents []device.Memory // by storage: T in place of float32
	notes    *notes
	name     string // of what it makes, in notes
}

// begin gives the persistent storages of a task their first content. Each parameter is moved away from it by noise of
// this deviation: what begins at zero hides mistakes.
func begin[T gemm.Float](t *testing.T, k task.Task, noise float64, n *notes, name string) *training[T] {
	t.Helper()
	engine := gemm.New(nil)
	m := &training[T]{k, engine, k.Graph.DTypes(), make([]device.Memory, len(k.Graph.Storages)), n, name}
	random := rand.New(rand.NewPCG(k.Seed, 1))
	for _, s := range k.Graph.Storages {
		elements := s.Bytes / m.types[s.ID].Bytes()
		m.contents[s.ID] = device.NewMemory(elements * m.unit(s.ID))
		if !s.Role.Persistent() {
			continue
		}
		first := make([]float32, elements)
		k.Init(s, first)
		for i, v := range first {
			if s.Role == graph.Parameter {
				v += float32(noise * random.NormFloat64())
			}
			m.content(s.ID)[i] = T(v)
		}
	}
	return m
}

// at returns the elements of a tensor.
func (m *training[T]) at(t graph.TensorID) []T {
	tensor := m.task.Graph.Tensors[t]
	unit := m.unit(tensor.Storage)
	from := tensor.Offset / tensor.DType.Bytes() * unit
	return view[T](m.contents[tensor.Storage][from : from+graph.Bytes(tensor.Shape.Elements())*unit])
}

// unit is the size of an element of a storage.
func (m *training[T]) unit(s graph.StorageID) graph.Bytes {
	if m.types[s] == graph.Int64 {
		return 8
	}
	var zero T
	return graph.Bytes(unsafe.Sizeof(zero))
}

// content returns all elements of a storage.
func (m *training[T]) content(s graph.StorageID) []T { return view[T](m.contents[s]) }

func view[T gemm.Float](memory device.Memory) []T {
	var zero T
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(memory))), len(memory)/int(unsafe.Sizeof(zero)))
}

// call carries out an op on these inputs and outputs.
func (m *training[T]) call(op *graph.Op, iteration int, in, out [][]T) {
	g := m.task.Graph
	c := &kernel.Call[T]{Kind: op.Kind, Attrs: op.Attrs, In: in, Out: out, InShapes: g.Shapes(op.Inputs),
		OutShapes: g.Shapes(op.Outputs),
		Seed:      m.task.Seed, Iteration: iteration, GEMM: m.engine}
	c.Scratch = make([]T, kernel.Scratch(op.Kind, op.Attrs, c.InShapes, c.OutShapes))
	kernel.Run(c)
}

// storages calls each with all storages of some roles, and their shapes.
func (m *training[T]) storages(each func(s graph.Storage, shape graph.Shape), roles ...graph.Role) {
	seen := make(map[graph.StorageID]bool)
	for _, t := range m.task.Graph.Tensors {
		s := m.task.Graph.Storages[t.Storage]
		if slices.Contains(roles, s.Role) && !seen[s.ID] && t.Bytes() == s.Bytes {
			seen[s.ID] = true
			each(s, t.Shape)
		}
	}
}

// train goes through some iterations and notes all there is to compare.
func (m *training[T]) train(iterations int) {
	g, feed := m.task.Graph, m.task.Feeder(nil)
	m.storages(func(s graph.Storage, shape graph.Shape) {
		note(m.notes, fmt.Sprintf("start.%d", s.ID), m.content(s.ID), shape)
	}, graph.Parameter, graph.State)
	for iteration := range iterations {
		m.storages(func(s graph.Storage, shape graph.Shape) {
			memory, values := device.NewMemory(s.Bytes), make([]float64, shape.Elements())
			feed(iteration, s.ID, memory)
			if m.types[s.ID] == graph.Int64 {
				copy(m.contents[s.ID], memory)
				for i, v := range memory.Int64() {
					values[i] = float64(v)
				}
			} else {
				for i, v := range memory.Float32() {
					m.content(s.ID)[i], values[i] = T(v), float64(v)
				}
			}
			note(m.notes, fmt.Sprintf("input.%d.%d", iteration, s.ID), values, shape)
		}, graph.Input)
		for i := range g.Ops {
			m.step(&g.Ops[i], iteration)
		}
		note(m.notes, fmt.Sprintf("%s.loss.%d", m.name, iteration), m.content(g.OutputStorage())[:1], graph.Shape{1})
	}
	m.storages(func(s graph.Storage, shape graph.Shape) {
		note(m.notes, fmt.Sprintf("%s.end.%d", m.name, s.ID), m.content(s.ID), shape)
	}, graph.Parameter, graph.State)
}

// step carries out an op, and notes the gradients of the first iteration and what each dropout multiplies with.
func (m *training[T]) step(op *graph.Op, iteration int) {
	g := m.task.Graph
	var in, out [][]T
	for _, t := range op.Inputs {
		in = append(in, m.at(t))
	}
	for _, t := range op.Outputs {
		out = append(out, m.at(t))
	}
	if op.Kind == graph.Dropout {
		mask := make([]T, len(in[0]))
		m.call(op, iteration, [][]T{slices.Repeat([]T{1}, len(mask))}, [][]T{mask})
		note(m.notes, fmt.Sprintf("mask.%d.%d", iteration, op.ID), mask, g.Tensors[op.Inputs[0]].Shape)
	}
	if op.Phase == graph.Optimize && iteration == 0 {
		w := g.Tensors[op.Inputs[0]]
		note(m.notes, fmt.Sprintf("%s.gradient.%d", m.name, w.Storage), in[1], w.Shape)
	}
	m.call(op, iteration, in, out)
}

// notes are named tensors, one after the other.
type notes struct {
	index map[string][]int // where each begins, in elements, and its shape
	data  []byte           // little-endian float64
}

// note adds a tensor, or puts it in place of one of this name and size.
func note[T gemm.Float](n *notes, name string, content []T, shape graph.Shape) {
	begin := len(n.data) / 8
	if before, ok := n.index[name]; ok {
		begin = before[0]
	} else {
		n.index[name] = append([]int{begin}, shape...)
		n.data = append(n.data, make([]byte, 8*len(content))...)
	}
	for i, v := range content {
		binary.LittleEndian.PutUint64(n.data[8*(begin+i):], math.Float64bits(float64(v)))
	}
}

// folder trains a graph in both precisions and makes the folder that oracle.py reads.
func (e experiment) folder(t *testing.T) string {
	t.Helper()
	k, err := task.Open(nil, e.g, 1, "")
	if err != nil {
		t.Fatal(err)
	}
	n := &notes{index: make(map[string][]int)}
	begin[float32](t, k, noise, n, "single").train(e.iterations)
	begin[float64](t, k, noise, n, "double").train(e.iterations)
	text, err := json.Marshal(e.g)
	if err != nil {
		t.Fatal(err)
	}
	index, err := json.Marshal(n.index)
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	for name, content := range map[string][]byte{"graph.json": text, "index.json": index, "data.bin": n.data,
		"way": []byte(e.way)} {
		if err := os.WriteFile(filepath.Join(folder, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}
