package kernels

import (
	"math"
	"math/rand/v2"

	"tensile/graph"
)

var sequenceGenerators = map[graph.Kind]generator{
	graph.Embedding: {0, func(rng *rand.Rand, round int) (graph.Attrs, []operand) {
		rows, width := upTo(rng, round, 12), upTo(rng, round, 50)
		return graph.Attrs{}, []operand{normalOperand(rng, rows, width), anyIDs(rng, upTo(rng, round, 30), rows)}
	}},
	graph.EmbeddingDW: {1e-6, func(rng *rand.Rand, round int) (graph.Attrs, []operand) {
		n, rows, width := upTo(rng, round, 30), upTo(rng, round, 12), upTo(rng, round, 50)
		a := graph.Attrs{Extent: [2]int{rows}}
		if round%2 == 1 {
			a.Length = 1 + rng.IntN(rows)
			a.Begin = rng.IntN(rows - a.Length + 1)
		}
		return a, []operand{anyIDs(rng, n, rows), normalOperand(rng, n, width)}
	}},
	graph.Bias: {2e-7, func(rng *rand.Rand, round int) (graph.Attrs, []operand) {
		rows, width := anyRows(rng, round)
		return graph.Attrs{}, []operand{normalOperand(rng, rows, width), normalOperand(rng, width)}
	}},
	graph.LSTM: {1e-6, func(rng *rand.Rand, round int) (graph.Attrs, []operand) {
		n, h := upTo(rng, round, 6), upTo(rng, round, 60)
		in := []operand{normalOperand(rng, n, 4*h), normalOperand(rng, n, 4*h), normalOperand(rng, n, h)}
		return graph.Attrs{}, in[:1+round%2*2]
	}},
	graph.LSTMGrad: {2e-6, func(rng *rand.Rand, round int) (graph.Attrs, []operand) {
		n, h := upTo(rng, round, 6), upTo(rng, round, 60)
		in := []operand{normalOperand(rng, n, 4*h), normalOperand(rng, n, 4*h), normalOperand(rng, n, h)}[:1+round%2*2]
		for range 1 + round/2%2 {
			in = append(in, normalOperand(rng, n, h))
		}
		return graph.Attrs{}, in
	}},
	graph.Softmax: {1e-6, func(rng *rand.Rand, round int) (graph.Attrs, []operand) {
		n, rows, width := upTo(rng, round, 3), upTo(rng, round, 6), upTo(rng, round, 70)
		a := graph.Attrs{Factor: 0.1 + rng.Float64(), Causal: round%2 == 0}
		if round == rounds-2 {
			n, rows, width = 1, 1, 3000
			a.Causal = false
		}
		if a.Causal {
			rows = width
		}
		return a, []operand{normalOperand(rng, n, rows, width)}
	}},
	graph.SoftmaxDX: {1e-6, func(rng *rand.Rand, round int) (graph.Attrs, []operand) {
		n, rows, width := upTo(rng, round, 3), upTo(rng, round, 6), upTo(rng, round, 70)
		return graph.Attrs{Factor: 0.1 + rng.Float64()}, []operand{positiveOperand(rng, n, rows, width),
			normalOperand(rng, n, rows, width)}
	}},
	graph.AdditiveScores: {1e-6, func(rng *rand.Rand, round int) (graph.Attrs, []operand) {
		return graph.Attrs{}, anyScores(rng, round)[:3]
	}},
	graph.AdditiveScoresGrad: {2e-6, func(rng *rand.Rand, round int) (graph.Attrs, []operand) {
		return graph.Attrs{}, anyScores(rng, round)
	}},
	graph.SoftmaxXent: {1e-6, func(rng *rand.Rand, round int) (graph.Attrs, []operand) {
		rows, classes := anyRows(rng, round)
		return graph.Attrs{}, []operand{normalOperand(rng, rows, classes), anyLabels(rng, rows, classes)}
	}},
	graph.SoftmaxXentDX: {2e-7, func(rng *rand.Rand, round int) (graph.Attrs, []operand) {
		rows, classes := anyRows(rng, round)
		return graph.Attrs{}, []operand{positiveOperand(rng, rows, classes), anyLabels(rng, rows, classes)}
	}},
	graph.MeanSquare:    {2e-7, pairs},
	graph.MeanSquareDX:  {2e-7, pairs},
	graph.SigmoidXent:   {1e-6, pairs},
	graph.SigmoidXentDX: {3e-7, pairs},
}

// anyIDs are n rows of a table.
func anyIDs(rng *rand.Rand, n, rows int) operand {
	return indexOperand(graph.Shape{n}, func() int64 { return rng.Int64N(int64(rows)) })
}

// anyLabels are classes, some of which do not count.
func anyLabels(rng *rand.Rand, rows, classes int) operand {
	return floatOperand(graph.Shape{rows}, func() float64 { return math.Max(-1, float64(rng.IntN(classes+1)-1)) })
}

// anyScores are q k v de.
func anyScores(rng *rand.Rand, round int) []operand {
	n, t, s, a := upTo(rng, round, 3), upTo(rng, round, 5), upTo(rng, round, 6), upTo(rng, round, 40)
	return []operand{normalOperand(rng, n, t, a), normalOperand(rng, n, s, a), normalOperand(rng, a),
		normalOperand(rng, n, t, s)}
}

// pairs are two operands alike, of several chunks in the last round.
func pairs(rng *rand.Rand, round int) (graph.Attrs, []operand) {
	shape := anyShape(rng, round)
	if round == rounds-1 {
		shape = graph.Shape{9001, 2}
	}
	return graph.Attrs{}, []operand{normalOperand(rng, shape...), normalOperand(rng, shape...)}
}
