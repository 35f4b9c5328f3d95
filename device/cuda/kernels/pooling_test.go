package kernels

import (
	"math"
	"math/rand/v2"
	"slices"

	"tensile/graph"
)

var poolingGenerators = map[graph.Kind]generator{
	graph.MaxPool: {0, func(rng *rand.Rand, round int) (graph.Attrs, []operand) {
		x, _, a := anyPool(rng, round)
		return a, []operand{coarseOperand(rng, x)}
	}},
	graph.MaxPoolDX: {1e-6, func(rng *rand.Rand, round int) (graph.Attrs, []operand) {
		x, y, a := anyPool(rng, round)
		in := coarseOperand(rng, x)
		out := example{kind: graph.MaxPool, attrs: a, in: []operand{in}}.compute()[0]
		i := -1
		return a, []operand{in, floatOperand(y, func() float64 { i++; return out[i] }), normalOperand(rng, y...)}
	}},
	graph.MaxPoolIndices: {0, func(rng *rand.Rand, round int) (graph.Attrs, []operand) {
		x, _, a := anyPool(rng, round)
		return a, []operand{coarseOperand(rng, x)}
	}},
	graph.MaxPoolIndicesDX: {1e-6, func(rng *rand.Rand, round int) (graph.Attrs, []operand) {
		x, y, a := anyPool(rng, round)
		out := example{kind: graph.MaxPoolIndices, attrs: a, in: []operand{coarseOperand(rng, x)}}.compute()[1]
		a.Extent = [2]int{x[2], x[3]}
		return a, []operand{{y, bytesOf(out)[:y.Elements()]}, normalOperand(rng, y...)}
	}},
	graph.AvgPool: {1e-6, func(rng *rand.Rand, round int) (graph.Attrs, []operand) {
		x, _, a := anyPool(rng, round)
		a.Inside = rng.IntN(2) == 0
		return a, []operand{normalOperand(rng, x...)}
	}},
	graph.AvgPoolDX: {1e-6, func(rng *rand.Rand, round int) (graph.Attrs, []operand) {
		x, y, a := anyPool(rng, round)
		a.Inside = rng.IntN(2) == 0
		return a, []operand{normalOperand(rng, x...), normalOperand(rng, y...), normalOperand(rng, y...)}
	}},
	graph.AvgPoolDYDX: {1e-6, func(rng *rand.Rand, round int) (graph.Attrs, []operand) {
		x, y, a := anyPool(rng, round)
		a.Inside, a.Extent = rng.IntN(2) == 0, [2]int{x[2], x[3]}
		return a, []operand{normalOperand(rng, y...)}
	}},
}

// anyPool is the shapes of x and y and the window between them. Some windows have gaps between them.
func anyPool(rng *rand.Rand, round int) (x, y graph.Shape, a graph.Attrs) {
	for {
		x = anyImage(rng, round)
		for d := range 2 {
			a.Kernel[d], a.Stride[d] = upTo(rng, round, 5), upTo(rng, round, 4)
			a.Pad[d] = rng.IntN(a.Kernel[d])
		}
		if out, err := graph.Infer(graph.MaxPool, a, []graph.Shape{x}); err == nil {
			return x, out[0], a
		}
	}
}

// coarseOperand has multiples of a half, so that there are ties, and now and then NaN.
func coarseOperand(rng *rand.Rand, shape graph.Shape) operand {
	return floatOperand(slices.Clone(shape), func() float64 {
		if rng.IntN(100) == 0 {
			return math.NaN()
		}
		return math.Round(2*rng.NormFloat64()) / 2
	})
}
