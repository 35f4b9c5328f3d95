package kernels

import (
	"math/rand/v2"

	"tensile/graph"
)

var normGenerators = map[graph.Kind]generator{
	graph.BatchNormStats: {1e-6, func(rng *rand.Rand, round int) (graph.Attrs, []operand) {
		return graph.Attrs{}, []operand{normalOperand(rng, anyBatch(rng, round)...)}
	}},
	graph.BatchNorm: {1e-6, func(rng *rand.Rand, round int) (graph.Attrs, []operand) {
		x := anyBatch(rng, round)
		c := x[1]
		return graph.Attrs{Epsilon: 1e-5}, []operand{normalOperand(rng, x...), normalOperand(rng, c),
			positiveOperand(rng, c), normalOperand(rng, c), normalOperand(rng, c)}
	}},
	graph.BatchNormUpdate: {1e-6, func(rng *rand.Rand, round int) (graph.Attrs, []operand) {
		c := upTo(rng, round, 300)
		return graph.Attrs{Momentum: rng.Float64(), Length: 2 + rng.IntN(10)}, []operand{normalOperand(rng, c),
			positiveOperand(rng, c), normalOperand(rng, c), positiveOperand(rng, c)}
	}},
	graph.BatchNormGrad: {3e-6, func(rng *rand.Rand, round int) (graph.Attrs, []operand) {
		x := anyBatch(rng, round)
		c := x[1]
		return graph.Attrs{Epsilon: 1e-5}, []operand{normalOperand(rng, x...), normalOperand(rng, c),
			positiveOperand(rng, c), normalOperand(rng, c), normalOperand(rng, x...)}
	}},
	graph.LayerNorm: {1e-6, func(rng *rand.Rand, round int) (graph.Attrs, []operand) {
		rows, width := anyRows(rng, round)
		return graph.Attrs{Epsilon: 1e-5}, []operand{normalOperand(rng, rows, width), normalOperand(rng, width),
			normalOperand(rng, width)}
	}},
	graph.LayerNormGrad: {3e-6, func(rng *rand.Rand, round int) (graph.Attrs, []operand) {
		rows, width := anyRows(rng, round)
		return graph.Attrs{}, []operand{normalOperand(rng, rows, width), normalOperand(rng, rows),
			positiveOperand(rng, rows), normalOperand(rng, width), normalOperand(rng, rows, width)}
	}},
	graph.LRN:   {2e-6, lrnExample(1)},
	graph.LRNDX: {5e-6, lrnExample(3)},
	graph.BiasDB: {1e-6, func(rng *rand.Rand, round int) (graph.Attrs, []operand) {
		switch x := anyBatch(rng, round); round % 3 {
		case 0:
			rows, width := anyRows(rng, round)
			return graph.Attrs{}, []operand{normalOperand(rng, rows, width)}
		case 1:
			return graph.Attrs{}, []operand{normalOperand(rng, x[:3]...)}
		default:
			return graph.Attrs{}, []operand{normalOperand(rng, x...)}
		}
	}},
}

func lrnExample(operands int) func(rng *rand.Rand, round int) (graph.Attrs, []operand) {
	return func(rng *rand.Rand, round int) (graph.Attrs, []operand) {
		a := graph.Attrs{Length: 1 + 2*rng.IntN(4), Factor: rng.Float64(), Exponent: 0.75, Epsilon: 0.5 + rng.Float64()}
		if round%2 == 1 {
			a.Exponent = 2 * rng.Float64()
		}
		x := graph.Shape{upTo(rng, round, 2), upTo(rng, round, 12), upTo(rng, round, 4), upTo(rng, round, 7)}
		var in []operand
		for range operands {
			in = append(in, normalOperand(rng, x...))
		}
		return a, in
	}
}

// anyBatch is a shape of four dimensions; the channels of the last two rounds have several chunks.
func anyBatch(rng *rand.Rand, round int) graph.Shape {
	switch round {
	case rounds - 1:
		return graph.Shape{3, 2, 90, 91}
	case rounds - 2:
		return graph.Shape{8193, 1, 1, 2}
	}
	return graph.Shape{upTo(rng, round, 5), upTo(rng, round, 6), upTo(rng, round, 20), upTo(rng, round, 20)}
}

// anyRows is the extents of a matrix, which has several parts in the last two rounds.
func anyRows(rng *rand.Rand, round int) (rows, width int) {
	switch round {
	case rounds - 1:
		return 130, 33
	case rounds - 2:
		return 65, 1100
	}
	return upTo(rng, round, 20), upTo(rng, round, 90)
}
