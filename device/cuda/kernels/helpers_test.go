package kernels

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"tensile/device/cpu/gemm"
	"tensile/device/cpu/kernel"
	"tensile/device/ptx"
	"tensile/graph"
)

// memory is a device's memory for a test: allocations at addresses of their own, with gaps between them.
type memory struct{ allocations []*ptx.Allocation }

// memoryBase is where the first allocation stands. It is an address that a Linux process can map as well.
const memoryBase = 1 << 44

// add allocates a copy of content, of which written says whether it has been written.
func (m *memory) add(content []byte, written bool) *ptx.Allocation {
	a := &ptx.Allocation{Address: memoryBase, Bytes: slices.Clone(content),
		Written: make([]uint64, (len(content)+63)/64)}
	if n := len(m.allocations); n > 0 {
		last := m.allocations[n-1]
		a.Address = (last.Address + uint64(len(last.Bytes)) + 256 + 255) &^ 255
	}
	if written {
		for i := range a.Written {
			a.Written[i] = math.MaxUint64
		}
	}
	m.allocations = append(m.allocations, a)
	return a
}

// Find implements ptx.Memory.
func (m *memory) Find(address uint64) *ptx.Allocation {
	for _, a := range m.allocations {
		if address >= a.Address && address < a.Address+uint64(len(a.Bytes)) {
			return a
		}
	}
	return nil
}

// flat is the content from memoryBase on, gaps included.
func (m *memory) flat() []byte {
	last := m.allocations[len(m.allocations)-1]
	content := make([]byte, last.Address+uint64(len(last.Bytes))-memoryBase)
	for _, a := range m.allocations {
		copy(content[a.Address-memoryBase:], a.Bytes)
	}
	return content
}

func (m *memory) set(content []byte) {
	for _, a := range m.allocations {
		copy(a.Bytes, content[a.Address-memoryBase:])
	}
}

// operand is a tensor of a test, of float32, or of int64 or bytes where the kind says so.
type operand struct {
	shape graph.Shape
	bytes []byte
}

func floatOperand(shape graph.Shape, value func() float64) operand {
	o := operand{shape, nil}
	for range shape.Elements() {
		o.bytes = binary.LittleEndian.AppendUint32(o.bytes, math.Float32bits(float32(value())))
	}
	return o
}

func normalOperand(rng *rand.Rand, shape ...int) operand { return floatOperand(shape, rng.NormFloat64) }

// positiveOperand has elements from 0.5 to 1.5.
func positiveOperand(rng *rand.Rand, shape ...int) operand {
	return floatOperand(shape, func() float64 { return 0.5 + rng.Float64() })
}

func indexOperand(shape graph.Shape, value func() int64) operand {
	o := operand{shape, nil}
	for range shape.Elements() {
		o.bytes = binary.LittleEndian.AppendUint64(o.bytes, uint64(value()))
	}
	return o
}

func floatsOf(bytes []byte) []float32 {
	out := make([]float32, len(bytes)/4)
	for i := range out {
		out[i] = math.Float32frombits(binary.LittleEndian.Uint32(bytes[4*i:]))
	}
	return out
}

// example is an op with its operands.
type example struct {
	kind      graph.Kind
	attrs     graph.Attrs
	in        []operand
	seed      uint64
	iteration int64
	unwanted  []int // outputs
}

func (e example) String() string {
	var shapes []graph.Shape
	for _, o := range e.in {
		shapes = append(shapes, o.shape)
	}
	return fmt.Sprintf("%s %+v of %v without %v", e.kind, e.attrs, shapes, e.unwanted)
}

// inputTypes are the types of inputs that are not float32.
var inputTypes = map[graph.Kind]map[int]graph.DType{
	graph.Embedding: {1: graph.Int64}, graph.EmbeddingDW: {0: graph.Int64}, graph.MaxPoolIndicesDX: {0: graph.Uint8},
}

func outputType(kind graph.Kind, i int) graph.DType {
	if kind == graph.MaxPoolIndices && i == 1 {
		return graph.Uint8
	}
	return graph.Float32
}

// places are the inputs behind the outputs of kinds in place.
var places = map[graph.Kind][]int{
	graph.BatchNormUpdate: {2, 3}, graph.SGD: {0}, graph.Momentum: {0, 2}, graph.Adam: {0, 2, 3},
	graph.Accumulate: {0}, graph.Scale: {0}, graph.SliceAccumulate: {0},
}

// place returns the input in whose place an output is made, or -1.
func (e *example) place(output int) int {
	if output == 0 && e.attrs.InPlace > 0 {
		return e.attrs.InPlace - 1
	}
	if p := places[e.kind]; output < len(p) {
		return p[output]
	}
	return -1
}

// prepared is an example in memory.
type prepared struct {
	example
	call   Call
	memory *memory
	in     []*ptx.Allocation
	out    []*ptx.Allocation // nil: not wanted
}

// prepare puts an example into memory: outputs and scratch are full of garbage and count as not written.
func (e example) prepare(t *testing.T) *prepared {
	t.Helper()
	p := &prepared{example: e, memory: new(memory)}
	c := &p.call
	*c = Call{Kind: e.kind, Attrs: e.attrs, Seed: e.seed}
	for i, o := range e.in {
		size := graph.Bytes(o.shape.Elements()) * inputTypes[e.kind][i].Bytes()
		if graph.Bytes(len(o.bytes)) != size {
			t.Fatalf("%v: input %d has %d bytes, want %d", e, i, len(o.bytes), size)
		}
		a := p.memory.add(o.bytes, true)
		p.in = append(p.in, a)
		c.In, c.InShapes = append(c.In, a.Address), append(c.InShapes, o.shape)
	}
	var err error
	if c.OutShapes, err = graph.Infer(e.kind, e.attrs, c.InShapes); err != nil {
		t.Fatal(err)
	}
	for i, shape := range c.OutShapes {
		switch at := e.place(i); {
		case slices.Contains(e.unwanted, i):
			p.out, c.Out = append(p.out, nil), append(c.Out, 0)
		case at >= 0:
			p.out, c.Out = append(p.out, p.in[at]), append(c.Out, c.In[at])
		default:
			size := shape.Elements() * int(outputType(e.kind, i).Bytes())
			a := p.memory.add(slices.Repeat([]byte{0xff}, size), false)
			p.out, c.Out = append(p.out, a), append(c.Out, a.Address)
		}
	}
	if size := Scratch(e.kind, e.attrs, c.InShapes, c.OutShapes); size > 0 {
		c.Scratch = p.memory.add(slices.Repeat([]byte{0xff}, int(size)), false).Address
	}
	c.Iteration = p.memory.add(binary.LittleEndian.AppendUint64(nil, uint64(e.iteration)), true).Address
	return p
}

// results are the outputs, nil where not wanted.
func (p *prepared) results() [][]byte {
	var all [][]byte
	for _, a := range p.out {
		if a == nil {
			all = append(all, nil)
			continue
		}
		all = append(all, a.Bytes)
	}
	return all
}

// scratch is the content of the scratch.
func (p *prepared) scratch() []byte {
	if a := p.memory.Find(p.call.Scratch); a != nil {
		return a.Bytes
	}
	return nil
}

// outputs executes an example by the gcc program and returns its outputs.
func (h *host) outputs(t *testing.T, e example) [][]byte {
	t.Helper()
	p := e.prepare(t)
	h.execute(t, p.memory, Launches(&p.call))
	return p.results()
}

var engine = sync.OnceValue(func() *gemm.Engine {
	e := gemm.New(nil)
	return e
})

// compute returns what the CPU's kernels make of an example in float64. Outputs that are not floats are the memory that
// they are.
func (e example) compute() [][]float64 {
	c := kernel.Call[float64]{Kind: e.kind, Attrs: e.attrs, Seed: e.seed, Iteration: int(e.iteration), GEMM: engine()}
	for i, o := range e.in {
		var data []float64
		switch inputTypes[e.kind][i] {
		case graph.Float32:
			for _, v := range floatsOf(o.bytes) {
				data = append(data, float64(v))
			}
		default: // the memory as it is
			padded := append(slices.Clone(o.bytes), make([]byte, 7)...)
			for at := 0; at+8 <= len(padded); at += 8 {
				data = append(data, math.Float64frombits(binary.LittleEndian.Uint64(padded[at:])))
			}
		}
		c.In, c.InShapes = append(c.In, data), append(c.InShapes, o.shape)
	}
	var err error
	if c.OutShapes, err = graph.Infer(e.kind, e.attrs, c.InShapes); err != nil {
		panic(err)
	}
	for i, shape := range c.OutShapes {
		switch at := e.place(i); {
		case at >= 0:
			c.Out = append(c.Out, c.In[at])
		case outputType(e.kind, i) == graph.Uint8:
			c.Out = append(c.Out, make([]float64, (shape.Elements()+7)/8))
		default:
			c.Out = append(c.Out, make([]float64, shape.Elements()))
		}
	}
	c.Scratch = make([]float64, kernel.Scratch(e.kind, e.attrs, c.InShapes, c.OutShapes))
	kernel.Run(&c)
	return c.Out
}

// near fails unless got is want within a tolerance relative to the larger of 1 and want's largest element.
func near(t *testing.T, what string, got []byte, want []float64, tolerance float64) {
	t.Helper()
	values := floatsOf(got)
	if len(values) != len(want) {
		t.Fatalf("%s has %d elements, want %d", what, len(values), len(want))
	}
	size := 1.0
	for _, v := range want {
		size = max(size, math.Abs(v))
	}
	for i, v := range values {
		if v64 := float64(v); v64 != want[i] && !(math.Abs(v64-want[i]) <= tolerance*size) &&
			!(v != v && math.IsNaN(want[i])) {
			t.Fatalf("%s[%d] = %v, want %v within %v", what, i, v, want[i], tolerance*size)
		}
	}
}

// sameBits fails unless two outputs hold the same bits. Any NaN is as good as another.
func sameBits(t *testing.T, what string, dtype graph.DType, got, want []byte) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d bytes, want %d", what, len(got), len(want))
	}
	if dtype != graph.Float32 {
		if !slices.Equal(got, want) {
			t.Fatalf("%s: other bytes", what)
		}
		return
	}
	g, w := floatsOf(got), floatsOf(want)
	for i := range g {
		if math.Float32bits(g[i]) != math.Float32bits(w[i]) && !(g[i] != g[i] && w[i] != w[i]) {
			t.Fatalf("%s: element %d of %d is %v (%#x), want %v (%#x)", what, i, len(g), g[i],
				math.Float32bits(g[i]), w[i], math.Float32bits(w[i]))
		}
	}
}

// bytesOf is the memory of floats.
func bytesOf(x []float64) []byte {
	var out []byte
	for _, v := range x {
		out = binary.LittleEndian.AppendUint64(out, math.Float64bits(v))
	}
	return out
}
