package kernels

import (
	"math/rand/v2"

	"tensile/graph"
)

var elementwiseGenerators = map[graph.Kind]generator{
	graph.ReLU:       {0, likes(1, nil)},
	graph.ReLUDX:     {0, likes(3, nil)},
	graph.ReLUYDX:    {0, likes(2, nil)},
	graph.Add:        {2e-7, likes(2, nil)},
	graph.Mul:        {2e-7, likes(2, nil)},
	graph.Accumulate: {2e-7, likes(2, nil)},
	graph.Scale:      {2e-7, likes(1, factors)},
	graph.Affine: {3e-7, likes(1, func(rng *rand.Rand) graph.Attrs {
		return graph.Attrs{Factor: rng.NormFloat64(), Shift: rng.NormFloat64()}
	})},
	graph.Power: {3e-7, func(rng *rand.Rand, round int) (graph.Attrs, []operand) {
		a := graph.Attrs{Exponent: []float64{2, -1, 0.5, -0.5, 3, 1.7, 0, 1}[round%8]}
		shape := anyShape(rng, round)
		if a.Exponent == 2 || a.Exponent == 3 || a.Exponent == 1 {
			return a, []operand{normalOperand(rng, shape...)}
		}
		return a, []operand{positiveOperand(rng, shape...)}
	}},
	graph.Exp: {3e-7, likes(1, nil)},
	graph.Log: {3e-7, func(rng *rand.Rand, round int) (graph.Attrs, []operand) {
		return graph.Attrs{}, []operand{positiveOperand(rng, anyShape(rng, round)...)}
	}},
	graph.Erf:       {1e-6, likes(1, nil)},
	graph.GELU:      {5e-7, likes(1, nil)},
	graph.GELUDX:    {5e-7, likes(2, nil)},
	graph.Sigmoid:   {3e-7, likes(1, nil)},
	graph.SigmoidDX: {3e-7, likes(2, nil)},
	graph.Tanh:      {3e-7, likes(1, nil)},
	graph.TanhDX:    {3e-7, likes(2, nil)},
	graph.Blend:     {3e-7, likes(3, nil)},
	graph.BlendGrad: {3e-7, likes(4, nil)},
	graph.Dropout:   {2e-7, likes(1, rates)},
	graph.DropoutDX: {2e-7, likes(1, rates)},
}

// likes makes operands of one shape, of normal elements.
func likes(n int, attrs func(rng *rand.Rand) graph.Attrs) func(*rand.Rand, int) (graph.Attrs, []operand) {
	return func(rng *rand.Rand, round int) (a graph.Attrs, in []operand) {
		if attrs != nil {
			a = attrs(rng)
		}
		shape := anyShape(rng, round)
		for range n {
			in = append(in, normalOperand(rng, shape...))
		}
		return a, in
	}
}

// anyShape is a shape of one to four dimensions.
func anyShape(rng *rand.Rand, round int) graph.Shape {
	shape := make(graph.Shape, 1+round%4)
	for i := range shape {
		shape[i] = upTo(rng, round, 9)
	}
	if round == rounds-1 {
		shape[0] = 700 // several blocks
	}
	return shape
}

// upTo is an extent of 1 to n, 1 in round 0.
func upTo(rng *rand.Rand, round, n int) int {
	if round == 0 {
		return 1
	}
	return 1 + rng.IntN(n)
}

func rates(rng *rand.Rand) graph.Attrs {
	return graph.Attrs{Rate: []float64{0, 0.1, 0.5, 0.99}[rng.IntN(4)], Key: rng.Uint64()}
}

func factors(rng *rand.Rand) graph.Attrs { return graph.Attrs{Factor: rng.NormFloat64()} }
