package kernels

import (
	"math/rand/v2"

	"tensile/graph"
)

var optimizerGenerators = map[graph.Kind]generator{
	graph.SGD: {2e-7, likes(2, func(rng *rand.Rand) graph.Attrs { return graph.Attrs{LearningRate: rng.Float64()} })},
	graph.Momentum: {3e-7, likes(3, func(rng *rand.Rand) graph.Attrs {
		return graph.Attrs{LearningRate: rng.Float64(), Momentum: rng.Float64()}
	})},
	graph.Adam: {1e-6, func(rng *rand.Rand, round int) (graph.Attrs, []operand) {
		shape := anyShape(rng, round)
		return graph.Attrs{LearningRate: rng.Float64() / 10, Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8},
			[]operand{normalOperand(rng, shape...), normalOperand(rng, shape...), normalOperand(rng, shape...),
				positiveOperand(rng, shape...)}
	}},
}
