package graph

// Losses and their gradients. Operand orders are part of a kind's meaning.
const (
	// logits[N,C] labels[N] -> loss[1] probabilities[N,C]; the mean over the rows whose label is not negative
	SoftmaxXent   Kind = "softmax_xent"
	SoftmaxXentDX Kind = "softmax_xent_dx" // probabilities labels -> dlogits
	MeanSquare    Kind = "mean_square"     // a b -> loss[1]: the mean of (a-b)²
	MeanSquareDX  Kind = "mean_square_dx"  // a b -> da
	// logits targets (0 to 1), equal shapes -> loss[1]: the mean over all elements
	SigmoidXent   Kind = "sigmoid_xent"
	SigmoidXentDX Kind = "sigmoid_xent_dx" // logits targets -> dlogits
)

var losses = map[Kind]kind{
	SoftmaxXent:   {inputs: [2]int{2, 2}, outputs: []int{fresh, fresh}, shapes: xentShapes, flops: perInput(5)},
	SoftmaxXentDX: {inputs: [2]int{2, 2}, outputs: []int{fresh}, shapes: xentDXShapes, flops: perOutput(2)},
	MeanSquare:    {inputs: [2]int{2, 2}, outputs: []int{fresh}, shapes: pairLoss, flops: perInput(3)},
	MeanSquareDX:  {inputs: [2]int{2, 2}, outputs: []int{fresh}, shapes: likeFirst(1), flops: perOutput(2)},
	SigmoidXent:   {inputs: [2]int{2, 2}, outputs: []int{fresh}, shapes: pairLoss, flops: perInput(8)},
	SigmoidXentDX: {inputs: [2]int{2, 2}, outputs: []int{fresh}, shapes: likeFirst(1), flops: perOutput(6)},
}

func xentShapes(_ Attrs, in []Shape) ([]Shape, error) {
	if err := checkExtents("logits", in[0], -1, -1); err != nil {
		return nil, err
	}
	if err := checkExtents("labels", in[1], in[0][0]); err != nil {
		return nil, err
	}
	return []Shape{{1}, in[0]}, nil
}

func xentDXShapes(_ Attrs, in []Shape) ([]Shape, error) {
	if err := checkExtents("probabilities", in[0], -1, -1); err != nil {
		return nil, err
	}
	if err := checkExtents("labels", in[1], in[0][0]); err != nil {
		return nil, err
	}
	return []Shape{in[0]}, nil
}

// pairLoss is the rule of a loss of two tensors that are alike.
func pairLoss(a Attrs, in []Shape) ([]Shape, error) {
	_, err := likeFirst(1)(a, in)
	return []Shape{{1}}, err
}
