package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"tensile/device/cpu/crew"
	"tensile/device/cpu/gemm"
	"tensile/graph"
)

// tensor is an operand of a test: elements and shape.
type tensor[T gemm.Float] struct {
	shape graph.Shape
	data  []T
}

// inPlace lists, for the kinds that update, the input behind each output.
var inPlace = map[graph.Kind][]int{
	graph.BatchNormUpdate: {2, 3}, graph.SGD: {0}, graph.Momentum: {0, 2}, graph.Adam: {0, 2, 3},
	graph.Accumulate: {0}, graph.Scale: {0}, graph.SliceAccumulate: {0},
}

// placesOf is what inPlace says of a kind, or its attributes do.
func placesOf(kind graph.Kind, attrs graph.Attrs) []int {
	if attrs.InPlace > 0 {
		return []int{attrs.InPlace - 1}
	}
	return inPlace[kind]
}

// engine is one with a number of threads, until the test ends.
func engine(t testing.TB, threads int) *gemm.Engine {
	helpers := crew.New(threads)
	t.Cleanup(helpers.Close)
	return gemm.New(helpers)
}

// job is what a call needs beside its operands.
type job struct {
	engine    *gemm.Engine
	seed      uint64
	iteration int
	unwanted  []int   // outputs to leave out
	garbage   float64 // content of outputs and scratch before the call; 0 here means NaN
}

// call prepares a call whose outputs and scratch hold garbage. Inputs updated in place are cloned first.
func call[T gemm.Float](t testing.TB, j job, kind graph.Kind, attrs graph.Attrs, in ...tensor[T]) *Call[T] {
	t.Helper()
	garbage := T(j.garbage)
	if garbage == 0 {
		garbage = T(math.NaN())
	}
	c := &Call[T]{Kind: kind, Attrs: attrs, Seed: j.seed, Iteration: j.iteration, GEMM: j.engine}
	for _, x := range in {
		c.In, c.InShapes = append(c.In, x.data), append(c.InShapes, x.shape)
	}
	var err error
	if c.OutShapes, err = graph.Infer(kind, attrs, c.InShapes); err != nil {
		t.Fatal(err)
	}
	places := placesOf(kind, attrs)
	for i, shape := range c.OutShapes {
		size := shape.Elements()
		if kind == graph.MaxPoolIndices && i == 1 {
			size = len(asBytes[T](make([]byte, size)...))
		}
		out := slices.Repeat([]T{garbage}, size)
		if i < len(places) {
			out = slices.Clone(c.In[places[i]])
			c.In[places[i]] = out
		}
		if slices.Contains(j.unwanted, i) {
			out = nil
		}
		c.Out = append(c.Out, out)
	}
	c.Scratch = slices.Repeat([]T{garbage}, Scratch(kind, attrs, c.InShapes, c.OutShapes))
	return c
}

// apply runs a kind on the inputs and returns its outputs.
func apply[T gemm.Float](t testing.TB, j job, kind graph.Kind, attrs graph.Attrs, in ...tensor[T]) []tensor[T] {
	t.Helper()
	c := call(t, j, kind, attrs, in...)
	Run(c)
	outs := make([]tensor[T], len(c.Out))
	for i := range outs {
		outs[i] = tensor[T]{c.OutShapes[i], c.Out[i]}
	}
	return outs
}

func randoms(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 1)) }

// normal returns a tensor of standard normal elements.
func normal[T gemm.Float](rng *rand.Rand, shape ...int) tensor[T] {
	x := tensor[T]{shape, make([]T, graph.Shape(shape).Elements())}
	for i := range x.data {
		x.data[i] = T(rng.NormFloat64())
	}
	return x
}

// positive returns a tensor of elements from 0.5 to 1.5.
func positive[T gemm.Float](rng *rand.Rand, shape ...int) tensor[T] {
	x := normal[T](rng, shape...)
	for i := range x.data {
		x.data[i] = T(0.5 + rng.Float64())
	}
	return x
}

// labels returns n classes below count.
func labels[T gemm.Float](rng *rand.Rand, n, count int) tensor[T] {
	x := normal[T](rng, n)
	for i := range x.data {
		x.data[i] = T(rng.IntN(count))
	}
	return x
}

// asIndices returns int64 numbers as the memory that a kernel is given.
func asIndices[T gemm.Float](of ...int64) []T {
	var zero T
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(of))), len(of)*8/int(unsafe.Sizeof(zero)))
}

// asBytes returns bytes as the memory that a kernel is given, filled up with zeros.
func asBytes[T gemm.Float](of ...byte) []T {
	var zero T
	size := int(unsafe.Sizeof(zero))
	memory := make([]T, (len(of)+size-1)/size)
	copy(bytesOf(memory), of)
	return memory
}

// randomIndices returns n indices below count.
func randomIndices[T gemm.Float](rng *rand.Rand, n, count int) tensor[T] {
	of := make([]int64, n)
	for i := range of {
		of[i] = rng.Int64N(int64(count))
	}
	return tensor[T]{graph.Shape{n}, asIndices[T](of...)}
}

// sameBits reports whether a and b hold the same bits, NaN included.
func sameBits[T gemm.Float](a, b []T) bool {
	return slices.EqualFunc(a, b, func(a, b T) bool {
		return math.Float64bits(float64(a)) == math.Float64bits(float64(b))
	})
}

// near fails unless got is want within tolerance, relative to the larger of 1 and want's largest element.
func near[T gemm.Float](t *testing.T, what string, got []T, want []float64, tolerance float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s has %d elements, want %d", what, len(got), len(want))
	}
	size := 1.0
	for _, v := range want {
		size = max(size, math.Abs(v))
	}
	for i, v := range got {
		if diff := math.Abs(float64(v) - want[i]); !(diff <= tolerance*size) {
			t.Fatalf("%s[%d] = %v, want %v within %v", what, i, v, want[i], tolerance*size)
		}
	}
}

// window returns the attributes of a sliding window.
func window(kernel, stride, pad [2]int) graph.Attrs {
	return graph.Attrs{Kernel: kernel, Stride: stride, Pad: pad}
}

// inGroups returns a convolution's attributes with groups.
func inGroups(a graph.Attrs, groups int) graph.Attrs {
	a.Groups = groups
	return a
}

// onto returns attributes with the extent of what an op makes.
func onto(a graph.Attrs, h, w int) graph.Attrs {
	a.Extent = [2]int{h, w}
	return a
}

// geometries are the windows that convolutions and pools are tested with, beside the extents of their input.
var geometries = []struct {
	n, c, h, w, k int
	attrs         graph.Attrs
}{
	{1, 1, 1, 1, 1, window([2]int{1, 1}, [2]int{1, 1}, [2]int{0, 0})},
	{2, 3, 5, 4, 2, window([2]int{1, 1}, [2]int{1, 1}, [2]int{0, 0})},
	{2, 2, 5, 7, 3, window([2]int{1, 1}, [2]int{2, 2}, [2]int{0, 0})},
	{2, 3, 6, 5, 2, window([2]int{3, 3}, [2]int{1, 1}, [2]int{1, 1})},
	{1, 2, 7, 8, 3, window([2]int{3, 3}, [2]int{2, 2}, [2]int{1, 1})},
	{2, 2, 6, 6, 2, window([2]int{2, 2}, [2]int{2, 2}, [2]int{0, 0})},
	{1, 2, 9, 11, 2, window([2]int{7, 7}, [2]int{2, 2}, [2]int{3, 3})},
	{2, 2, 5, 8, 3, window([2]int{1, 7}, [2]int{1, 1}, [2]int{0, 3})},
	{2, 2, 8, 5, 3, window([2]int{3, 2}, [2]int{2, 3}, [2]int{2, 0})},
	{1, 1, 2, 1, 1, window([2]int{5, 4}, [2]int{1, 2}, [2]int{4, 3})},
	{1, 2, 7, 7, 1, window([2]int{2, 2}, [2]int{3, 3}, [2]int{0, 1})}, // gaps between windows
}

func forEachGeometry(t *testing.T, check func(t *testing.T, i int)) {
	for i, g := range geometries {
		name := fmt.Sprintf("%dx%dx%dx%d,k=%d,%dx%d,s=%v,p=%v", g.n, g.c, g.h, g.w, g.k, g.attrs.Kernel[0],
			g.attrs.Kernel[1], g.attrs.Stride, g.attrs.Pad)
		t.Run(name, func(t *testing.T) { check(t, i) })
	}
}
