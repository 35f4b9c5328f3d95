package graph

import "slices"

// Updates of parameters by gradients. Operand orders are part of a kind's meaning.
const (
	SGD      Kind = "sgd"          // w dw -> w, in place; LearningRate
	Momentum Kind = "sgd_momentum" // w dw m -> w m, in place; LearningRate, Momentum
	// w dw m v -> w m v, in place; LearningRate, Beta1, Beta2, Epsilon; its step is the iteration
	Adam Kind = "adam"
)

var optimizers = map[Kind]kind{
	SGD: {inputs: [2]int{2, 2}, outputs: []int{0}, shapes: optimizerShapes(2, 1), flops: perOutput(2),
		attrs: names("learning_rate")},
	Momentum: {inputs: [2]int{3, 3}, outputs: []int{0, 2}, shapes: optimizerShapes(3, 2), flops: perOutput(2),
		attrs: names("learning_rate", "momentum"), check: momentumCheck},
	Adam: {inputs: [2]int{4, 4}, outputs: []int{0, 2, 3}, shapes: optimizerShapes(4, 3), flops: perOutput(4),
		attrs: names("learning_rate", "beta1", "beta2", "epsilon"), check: adamCheck},
}

// optimizerShapes is the rule of an update of w by dw with more state of the same shape.
func optimizerShapes(inputs, outputs int) func(Attrs, []Shape) ([]Shape, error) {
	return func(_ Attrs, in []Shape) ([]Shape, error) {
		for _, s := range in[1:inputs] {
			if err := checkExtents("operand", s, in[0]...); err != nil {
				return nil, err
			}
		}
		return slices.Repeat([]Shape{in[0]}, outputs), nil
	}
}

func adamCheck(a Attrs) error {
	return firstError(share("beta1", a.Beta1), share("beta2", a.Beta2), positive("epsilon", a.Epsilon))
}
