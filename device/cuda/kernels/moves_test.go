package kernels

import (
	"math/rand/v2"

	"tensile/graph"
)

var moveGenerators = map[graph.Kind]generator{
	graph.Expand: {0, func(rng *rand.Rand, round int) (graph.Attrs, []operand) {
		rows, width := anyRows(rng, round)
		return graph.Attrs{Extent: [2]int{upTo(rng, round, 9)}}, []operand{normalOperand(rng, rows, width)}
	}},
	graph.SumOver: {3e-7, func(rng *rand.Rand, round int) (graph.Attrs, []operand) {
		rows, width := anyRows(rng, round)
		return graph.Attrs{}, []operand{normalOperand(rng, rows, upTo(rng, round, 9), width)}
	}},
	graph.Concat: {0, func(rng *rand.Rand, round int) (graph.Attrs, []operand) {
		shape := anyShape(rng, round)
		dim := rng.IntN(len(shape))
		var in []operand
		for range 2 + rng.IntN(3) {
			shape[dim] = upTo(rng, round, 5)
			in = append(in, normalOperand(rng, append(graph.Shape{}, shape...)...))
		}
		return graph.Attrs{Dim: dim}, in
	}},
	graph.Slice: {0, func(rng *rand.Rand, round int) (graph.Attrs, []operand) {
		shape, a := anyRange(rng, round)
		return a, []operand{normalOperand(rng, shape...)}
	}},
	graph.SliceDX: {0, func(rng *rand.Rand, round int) (graph.Attrs, []operand) {
		shape, a := anyRange(rng, round)
		a.Extent[0] = shape[a.Dim]
		shape[a.Dim] = a.Length
		return a, []operand{normalOperand(rng, shape...)}
	}},
	graph.SliceAccumulate: {2e-7, func(rng *rand.Rand, round int) (graph.Attrs, []operand) {
		shape, a := anyRange(rng, round)
		part := append(graph.Shape{}, shape...)
		part[a.Dim] = a.Length
		return a, []operand{normalOperand(rng, shape...), normalOperand(rng, part...)}
	}},
	graph.Pad: {0, func(rng *rand.Rand, round int) (graph.Attrs, []operand) {
		x := anyImage(rng, round)
		var a graph.Attrs
		for d := range 2 {
			a.Extent[d] = upTo(rng, round, 2*x[2+d])
			a.Pad[d] = rng.IntN(x[2+d]+a.Extent[d]-1) - x[2+d] + 1
		}
		return a, []operand{normalOperand(rng, x...)}
	}},
	graph.Transpose: {0, func(rng *rand.Rand, round int) (graph.Attrs, []operand) {
		return graph.Attrs{}, []operand{normalOperand(rng, anyImage(rng, round)...)}
	}},
}

// anyRange is a shape and a range along one of its dimensions.
func anyRange(rng *rand.Rand, round int) (graph.Shape, graph.Attrs) {
	shape := anyShape(rng, round)
	a := graph.Attrs{Dim: rng.IntN(len(shape))}
	a.Length = 1 + rng.IntN(shape[a.Dim])
	a.Begin = rng.IntN(shape[a.Dim] - a.Length + 1)
	return shape, a
}

// anyImage is a shape of four dimensions.
func anyImage(rng *rand.Rand, round int) graph.Shape {
	return graph.Shape{upTo(rng, round, 3), upTo(rng, round, 4), upTo(rng, round, 11), upTo(rng, round, 11)}
}
