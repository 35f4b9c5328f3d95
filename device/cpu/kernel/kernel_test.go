package kernel

import (
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"tensile/device/cpu/gemm"
	"tensile/graph"
)

// example is a call of a kind with sensible inputs.
type example[T gemm.Float] struct {
	kind  graph.Kind
	attrs graph.Attrs
	in    func(rng *rand.Rand) []tensor[T]
}

var (
	convAttrs  = window([2]int{3, 3}, [2]int{2, 2}, [2]int{1, 1})
	groupAttrs = inGroups(convAttrs, 2)
	depthAttrs = inGroups(convAttrs, 3)
	lrnAttrs   = graph.Attrs{Length: 3, Factor: 0.1, Exponent: 0.75, Epsilon: 1}
	poolAttrs  = window([2]int{3, 3}, [2]int{2, 2}, [2]int{1, 1})
	rangeAttrs = graph.Attrs{Dim: 2, Begin: 3, Length: 4}
	adamAttrs  = graph.Attrs{LearningRate: 1e-2, Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8}
)

// examples holds one call of every kind.
func examples[T gemm.Float]() []example[T] {
	type tensors = []tensor[T]
	normals := func(shapes ...graph.Shape) func(rng *rand.Rand) tensors {
		return func(rng *rand.Rand) (in tensors) {
			for _, s := range shapes {
				in = append(in, normal[T](rng, s...))
			}
			return in
		}
	}
	image, pooled, one, matrix := graph.Shape{2, 3, 9, 8}, graph.Shape{2, 3, 5, 4}, graph.Shape{3}, graph.Shape{5, 6}
	return []example[T]{
		{graph.Conv2D, convAttrs, normals(image, graph.Shape{4, 3, 3, 3}, graph.Shape{4})},
		{graph.Conv2DDW, convAttrs, normals(image, graph.Shape{2, 4, 5, 4})},
		{graph.Conv2DDX, onto(convAttrs, 9, 8), normals(graph.Shape{2, 4, 5, 4}, graph.Shape{4, 3, 3, 3})},
		{graph.Conv2D, groupAttrs, normals(graph.Shape{2, 6, 9, 8}, graph.Shape{4, 3, 3, 3}, graph.Shape{4})},
		{graph.Conv2DDW, groupAttrs, normals(graph.Shape{2, 6, 9, 8}, graph.Shape{2, 4, 5, 4})},
		{graph.Conv2DDX, onto(groupAttrs, 9, 8), normals(graph.Shape{2, 4, 5, 4}, graph.Shape{4, 3, 3, 3})},
		{graph.Conv2D, depthAttrs, normals(image, graph.Shape{6, 1, 3, 3}, graph.Shape{6})},
		{graph.Conv2DDW, depthAttrs, normals(image, graph.Shape{2, 6, 5, 4})},
		{graph.Conv2DDX, onto(depthAttrs, 9, 8), normals(graph.Shape{2, 6, 5, 4}, graph.Shape{6, 1, 3, 3})},
		{graph.Linear, graph.Attrs{}, normals(graph.Shape{5, 7}, graph.Shape{6, 7}, graph.Shape{6})},
		{graph.LinearDW, graph.Attrs{}, normals(graph.Shape{5, 7}, graph.Shape{5, 6})},
		{graph.LinearDX, graph.Attrs{}, normals(graph.Shape{5, 6}, graph.Shape{6, 7})},
		{graph.BiasDB, graph.Attrs{}, normals(image)},
		{graph.ReLU, graph.Attrs{}, normals(image)},
		{graph.ReLUDX, graph.Attrs{}, normals(image, image, image)},
		{graph.ReLUYDX, graph.Attrs{}, normals(image, image)},
		{graph.MaxPool, poolAttrs, normals(image)},
		{graph.MaxPoolDX, poolAttrs, normals(image, pooled, pooled)},
		{graph.MaxPoolIndices, poolAttrs, normals(image)},
		{graph.MaxPoolIndicesDX, onto(poolAttrs, 9, 8), func(rng *rand.Rand) tensors {
			return tensors{{pooled, asBytes[T](slices.Repeat([]byte{0, 3, graph.NoMaximum, 1, 2}, 24)...)},
				normal[T](rng, pooled...)}
		}},
		{graph.AvgPool, poolAttrs, normals(image)},
		{graph.AvgPoolDX, poolAttrs, normals(image, pooled, pooled)},
		{graph.AvgPoolDYDX, onto(poolAttrs, 9, 8), normals(pooled)},
		{graph.Pad, graph.Attrs{Pad: [2]int{1, -2}, Extent: [2]int{12, 9}}, normals(image)},
		{graph.LRN, lrnAttrs, normals(image)},
		{graph.LRNDX, lrnAttrs, normals(image, image, image)},
		{graph.BatchNormStats, graph.Attrs{}, normals(image)},
		{graph.BatchNorm, graph.Attrs{Epsilon: 1e-5}, func(rng *rand.Rand) tensors {
			return tensors{normal[T](rng, image...), normal[T](rng, 3), positive[T](rng, 3), normal[T](rng, 3),
				normal[T](rng, 3)}
		}},
		{graph.BatchNormUpdate, graph.Attrs{Momentum: 0.1, Length: 5}, normals(one, one, one, one)},
		{graph.BatchNormGrad, graph.Attrs{Epsilon: 1e-5}, func(rng *rand.Rand) tensors {
			return tensors{normal[T](rng, image...), normal[T](rng, 3), positive[T](rng, 3), normal[T](rng, 3),
				normal[T](rng, image...)}
		}},
		{graph.Add, graph.Attrs{}, normals(image, image)},
		{graph.Mul, graph.Attrs{}, normals(image, image)},
		{graph.Accumulate, graph.Attrs{}, normals(image, image)},
		{graph.Scale, graph.Attrs{Factor: 0.3}, normals(image)},
		{graph.Affine, graph.Attrs{Factor: 0.3, Shift: -2}, normals(image)},
		{graph.Power, graph.Attrs{Exponent: -0.5}, func(rng *rand.Rand) tensors {
			return tensors{positive[T](rng, image...)}
		}},
		{graph.Exp, graph.Attrs{}, normals(image)},
		{graph.Log, graph.Attrs{}, func(rng *rand.Rand) tensors { return tensors{positive[T](rng, image...)} }},
		{graph.Erf, graph.Attrs{}, normals(image)},
		{graph.Expand, graph.Attrs{Extent: [2]int{3}}, normals(matrix)},
		{graph.SumOver, graph.Attrs{}, normals(graph.Shape{2, 3, 70})},
		{graph.Concat, graph.Attrs{Dim: 1}, normals(image, graph.Shape{2, 4, 9, 8}, image)},
		{graph.Slice, rangeAttrs, normals(image)},
		{graph.SliceDX, onto(rangeAttrs, 9, 0), normals(graph.Shape{2, 3, 4, 8})},
		{graph.SliceAccumulate, rangeAttrs, normals(image, graph.Shape{2, 3, 4, 8})},
		{graph.Dropout, graph.Attrs{Rate: 0.4, Key: 7}, normals(image)},
		{graph.DropoutDX, graph.Attrs{Rate: 0.4, Key: 7}, normals(image)},
		{graph.SoftmaxXent, graph.Attrs{}, func(rng *rand.Rand) tensors {
			return tensors{normal[T](rng, 5, 7), labels[T](rng, 5, 7)}
		}},
		{graph.SoftmaxXentDX, graph.Attrs{}, func(rng *rand.Rand) tensors {
			return tensors{normal[T](rng, 5, 7), labels[T](rng, 5, 7)}
		}},
		{graph.Embedding, graph.Attrs{}, func(rng *rand.Rand) tensors {
			return tensors{normal[T](rng, 7, 3), randomIndices[T](rng, 10, 7)}
		}},
		{graph.EmbeddingDW, graph.Attrs{Extent: [2]int{7}}, func(rng *rand.Rand) tensors {
			return tensors{randomIndices[T](rng, 10, 7), normal[T](rng, 10, 3)}
		}},
		{graph.Bias, graph.Attrs{}, normals(matrix, graph.Shape{6})},
		{graph.LayerNorm, graph.Attrs{Epsilon: 1e-5}, normals(matrix, graph.Shape{6}, graph.Shape{6})},
		{graph.LayerNorm, graph.Attrs{Epsilon: 1e-5}, func(rng *rand.Rand) tensors {
			x := normal[T](rng, 3, 41)
			for i := range x.data {
				x.data[i] += 7
			}
			return tensors{x, normal[T](rng, 41), normal[T](rng, 41)}
		}},
		{graph.LayerNormGrad, graph.Attrs{}, func(rng *rand.Rand) tensors {
			return tensors{normal[T](rng, 3, 41), normal[T](rng, 3), positive[T](rng, 3), normal[T](rng, 41),
				normal[T](rng, 3, 41)}
		}},
		{graph.LayerNormGrad, graph.Attrs{}, func(rng *rand.Rand) tensors {
			return tensors{normal[T](rng, 5, 6), normal[T](rng, 5), positive[T](rng, 5), normal[T](rng, 6),
				normal[T](rng, 5, 6)}
		}},
		{graph.GELU, graph.Attrs{}, normals(image)},
		{graph.GELUDX, graph.Attrs{}, normals(image, image)},
		{graph.Sigmoid, graph.Attrs{}, normals(image)},
		{graph.SigmoidDX, graph.Attrs{}, normals(image, image)},
		{graph.Tanh, graph.Attrs{}, normals(image)},
		{graph.TanhDX, graph.Attrs{}, normals(image, image)},
		{graph.Blend, graph.Attrs{}, normals(image, image, image)},
		{graph.BlendGrad, graph.Attrs{}, normals(image, image, image, image)},
		{graph.MatMul, graph.Attrs{}, normals(graph.Shape{3, 4, 5}, graph.Shape{3, 5, 6})},
		{graph.Transpose, graph.Attrs{}, normals(image)},
		{graph.Softmax, graph.Attrs{Factor: 0.5, Causal: true}, normals(graph.Shape{3, 5, 5})},
		{graph.SoftmaxDX, graph.Attrs{Factor: 0.5}, normals(graph.Shape{3, 5, 5}, graph.Shape{3, 5, 5})},
		{graph.AdditiveScores, graph.Attrs{}, normals(graph.Shape{2, 3, 4}, graph.Shape{2, 5, 4}, graph.Shape{4})},
		{graph.AdditiveScoresGrad, graph.Attrs{}, normals(graph.Shape{2, 3, 4}, graph.Shape{2, 5, 4}, graph.Shape{4},
			graph.Shape{2, 3, 5})},
		{graph.LSTM, graph.Attrs{}, normals(graph.Shape{2, 12}, graph.Shape{2, 12}, graph.Shape{2, 3})},
		{graph.LSTMGrad, graph.Attrs{}, normals(graph.Shape{2, 12}, graph.Shape{2, 12}, graph.Shape{2, 3},
			graph.Shape{2, 3}, graph.Shape{2, 3})},
		{graph.MeanSquare, graph.Attrs{}, normals(image, image)},
		{graph.MeanSquareDX, graph.Attrs{}, normals(image, image)},
		{graph.SigmoidXent, graph.Attrs{}, normals(image, image)},
		{graph.SigmoidXentDX, graph.Attrs{}, normals(image, image)},
		{graph.SGD, graph.Attrs{LearningRate: 0.1}, normals(image, image)},
		{graph.Momentum, graph.Attrs{LearningRate: 0.1, Momentum: 0.9}, normals(image, image, image)},
		{graph.Adam, adamAttrs, func(rng *rand.Rand) tensors {
			return tensors{normal[T](rng, 40), normal[T](rng, 40), normal[T](rng, 40), positive[T](rng, 40)}
		}},
	}
}

func TestEveryKindHasAKernelAndAnExample(t *testing.T) {
	var tested []graph.Kind
	for _, e := range examples[float32]() {
		tested = append(tested, e.kind)
	}
	for _, kind := range graph.Kinds() {
		if _, ok := kernels32[kind]; !ok {
			t.Errorf("%s has no kernel", kind)
		}
		if !slices.Contains(tested, kind) {
			t.Errorf("%s has no example in this test", kind)
		}
	}
	if len(kernels32) != len(graph.Kinds()) || len(kernels64) != len(kernels32) {
		t.Errorf("%d and %d kernels for %d kinds", len(kernels32), len(kernels64), len(graph.Kinds()))
	}
}

// What kernels compute changes with their revision alone. Other architectures fuse multiplications and additions.
func TestRevision(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("the bits are known for amd64 alone: run this test there")
	}
	sum := fnv.New64a()
	for _, x := range examples[float32]() {
		for _, out := range apply(t, job{engine: engine(t, 1), seed: 3}, x.kind, x.attrs, x.in(randoms(11))...) {
			for _, v := range out.data {
				fmt.Fprintf(sum, "%08x", math.Float32bits(v))
			}
		}
	}
	got := fmt.Sprintf("%d: %x", Revision, sum.Sum64())
	if want := "2: 473b276d06da92e3"; got != want {
		t.Errorf("revision and bits are %s, want %s: where the bits are to change, raise the revision, so that no job "+
			"goes on with others in the middle", got, want)
	}
}

// Whatever outputs and scratch held before, the bits are the same, every output element is written, and inputs that
// are not updated in place stay as they are.
func testGarbage[T gemm.Float](t *testing.T) {
	e := engine(t, 1)
	for _, x := range examples[T]() {
		t.Run(string(x.kind), func(t *testing.T) {
			clean := call(t, job{engine: e, seed: 3, garbage: 1e-3}, x.kind, x.attrs, x.in(randoms(5))...)
			dirty := call(t, job{engine: e, seed: 3}, x.kind, x.attrs, x.in(randoms(5))...)
			Run(clean)
			Run(dirty)
			for i := range clean.Out {
				if !sameBits(clean.Out[i], dirty.Out[i]) {
					t.Errorf("output %d depends on what outputs and scratch held", i)
				}
				if indices := x.kind == graph.MaxPoolIndices && i == 1; !indices && slices.ContainsFunc(dirty.Out[i],
					func(v T) bool { return v != v }) {
					t.Errorf("output %d holds NaN", i)
				}
			}
			for i, want := range x.in(randoms(5)) {
				if !slices.Contains(placesOf(x.kind, x.attrs), i) && !sameBits(dirty.In[i], want.data) {
					t.Errorf("input %d was written", i)
				}
			}
		})
	}
}

func TestGarbageDoesNotMatter(t *testing.T) {
	t.Run("float32", testGarbage[float32])
	t.Run("float64", testGarbage[float64])
}

// Leaving out any set of outputs keeps the bits of the others.
func TestUnwantedOutputs(t *testing.T) {
	for _, x := range examples[float32]() {
		if !kernels32[x.kind].partial {
			continue
		}
		all := apply(t, job{}, x.kind, x.attrs, x.in(randoms(6))...)
		for set := range 1 << len(all) {
			var unwanted []int
			for i := range all {
				if set>>i&1 == 1 {
					unwanted = append(unwanted, i)
				}
			}
			t.Run(fmt.Sprintf("%s,without=%v", x.kind, unwanted), func(t *testing.T) {
				for i, got := range apply(t, job{unwanted: unwanted}, x.kind, x.attrs, x.in(randoms(6))...) {
					if got.data != nil && !sameBits(got.data, all[i].data) {
						t.Errorf("output %d has other bits", i)
					}
				}
			})
		}
	}
}

// Every kind gives the same bits on any number of threads, also where a part is a single element.
func TestThreadsKeepBits(t *testing.T) {
	defer func(before int) { leastElements = before }(leastElements)
	leastElements = 1
	for _, x := range examples[float32]() {
		want := apply(t, job{engine: engine(t, 1)}, x.kind, x.attrs, x.in(randoms(7))...)
		for _, threads := range []int{2, 3} {
			for i, got := range apply(t, job{engine: engine(t, threads)}, x.kind, x.attrs, x.in(randoms(7))...) {
				if !sameBits(got.data, want[i].data) {
					t.Errorf("output %d of %s has other bits on %d threads", i, x.kind, threads)
				}
			}
		}
	}
}

// A type that is a float32 underneath runs on the same kernels.
func TestNamedFloat(t *testing.T) {
	type weight float32
	x := tensor[weight]{graph.Shape{3}, []weight{-1, 0, 2}}
	if got := apply(t, job{}, graph.ReLU, graph.Attrs{}, x)[0].data; !slices.Equal(got, []weight{0, 0, 2}) {
		t.Errorf("relu(%v) = %v", x.data, got)
	}
}

func TestBugsPanic(t *testing.T) {
	x := tensor[float32]{graph.Shape{4, 2}, make([]float32, 8)}
	good := func() *Call[float32] { return call(t, job{}, graph.Accumulate, graph.Attrs{}, x, x) }
	pool := tensor[float32]{graph.Shape{1, 1, 4, 4}, make([]float32, 16)}
	weights := tensor[float32]{graph.Shape{1, 1, 3, 3}, make([]float32, 9)}
	for name, bug := range map[string]func() *Call[float32]{
		"unknown kind": func() *Call[float32] { c := good(); c.Kind = "fft"; return c },
		"short input":  func() *Call[float32] { c := good(); c.In[1] = c.In[1][:7]; return c },
		"no shapes":    func() *Call[float32] { c := good(); c.OutShapes = nil; return c },
		"no output":    func() *Call[float32] { c := good(); c.Out[0] = nil; return c },
		"not in place": func() *Call[float32] { c := good(); c.Out[0] = make([]float32, 8); return c },
		"in place elsewhere": func() *Call[float32] {
			c := call(t, job{}, graph.ReLU, graph.Attrs{}, x)
			c.Attrs.InPlace = 1
			return c
		},
		"rate of 1": func() *Call[float32] {
			c := call(t, job{}, graph.Dropout, graph.Attrs{}, x)
			c.Attrs.Rate = 1
			return c
		},
		"short scratch": func() *Call[float32] {
			three := onto(window([2]int{3, 3}, [2]int{1, 1}, [2]int{1, 1}), 4, 4)
			c := call(t, job{}, graph.Conv2DDX, three, pool, weights)
			c.Scratch = c.Scratch[1:]
			return c
		},
		"label too large": func() *Call[float32] {
			return call(t, job{}, graph.SoftmaxXent, graph.Attrs{}, x, tensor[float32]{graph.Shape{4},
				[]float32{0, 1, 2, 0}})
		},
		"label not whole": func() *Call[float32] {
			return call(t, job{}, graph.SoftmaxXentDX, graph.Attrs{}, x, tensor[float32]{graph.Shape{4},
				[]float32{0, 0.5, 1, 0}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if message, ok := recover().(string); !ok || !strings.HasPrefix(message, "kernel: ") {
					t.Errorf("panicked with %q, want a message of package kernel", message)
				}
			}()
			Run(bug())
		})
	}
}

// TestInPlace makes every op that may be made in place of an operand so, in each place, and demands the bits that all
// outputs have with storages of their own, also where threads compute parts of it.
func testInPlace[T gemm.Float](t *testing.T, e *gemm.Engine) {
	tried := 0
	for _, x := range examples[T]() {
		for _, operand := range graph.MayOverwrite(x.kind) {
			want := apply(t, job{seed: 3}, x.kind, x.attrs, x.in(randoms(7))...)
			attrs := x.attrs
			attrs.InPlace = 1 + operand
			c := call(t, job{seed: 3, engine: e}, x.kind, attrs, x.in(randoms(7))...)
			Run(c)
			for i, got := range c.Out {
				if !sameBits(got, want[i].data) {
					t.Errorf("output %d of %s in place of operand %d has other bits", i, x.kind, operand)
				}
			}
			for i, before := range x.in(randoms(7)) {
				if i != operand && !sameBits(c.In[i], before.data) {
					t.Errorf("%s in place of operand %d writes operand %d", x.kind, operand, i)
				}
			}
			tried++
		}
	}
	if tried < 10 {
		t.Errorf("%d ops in place tried", tried)
	}
}

func TestInPlace(t *testing.T) {
	t.Run("float32", func(t *testing.T) { testInPlace[float32](t, engine(t, 1)) })
	t.Run("float64", func(t *testing.T) { testInPlace[float64](t, engine(t, 1)) })
	defer func(before int) { leastElements = before }(leastElements)
	leastElements = 1
	t.Run("threads", func(t *testing.T) { testInPlace[float32](t, engine(t, 3)) })
}
