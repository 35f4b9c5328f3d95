package graph

import "fmt"

// Kind names an operator. rules holds what follows from it.
type Kind string

// Operand orders are part of a kind's meaning; kernels, autodiff and the rules rely on them.
const (
	Conv2D   Kind = "conv2d"    // x[N,C,H,W] w[K,C/G,R,S] (b[K]) -> y[N,K,P,Q]; Kernel is (R,S), Groups G; 0 groups are 1
	Conv2DDW Kind = "conv2d_dw" // x dy -> dw
	Conv2DDX Kind = "conv2d_dx" // dy w -> dx; Attrs.Extent is (H,W)

	Linear   Kind = "linear"    // x[N,I] w[O,I] (b[O]) -> y[N,O]
	LinearDW Kind = "linear_dw" // x dy -> dw
	LinearDX Kind = "linear_dx" // dy w -> dx

	BiasDB Kind = "bias_db" // dy[N,K,...] -> db[K]: sums over every dimension but the second

	ReLU   Kind = "relu"    // x -> y
	ReLUDX Kind = "relu_dx" // x y dy -> dx, as cudnnActivationBackward reads them

	MaxPool   Kind = "max_pool"    // x[N,C,H,W] -> y; Kernel, Stride, Pad; padding never wins
	MaxPoolDX Kind = "max_pool_dx" // x y dy -> dx; the first element equal to the maximum takes the gradient
	AvgPool   Kind = "avg_pool"    // x[N,C,H,W] -> y; padding counts as zeros, the divisor is R*S; with Inside, the pixels inside of x
	AvgPoolDX Kind = "avg_pool_dx" // x y dy -> dx

	Pad Kind = "pad" // x[N,C,H,W] -> y[N,C,P,Q], whose pixel (p,q) is x's (p-Pad[0],q-Pad[1]) or zero; Extent is (P,Q); negative Pad crops

	LRN   Kind = "lrn"    // x[N,C,H,W] -> y = x·(Epsilon + Factor·Σx²)^-Exponent, the sum over Length channels around
	LRNDX Kind = "lrn_dx" // x y dy -> dx

	BatchNormStats  Kind = "batch_norm_stats"  // x -> mean[C] variance[C] (biased)
	BatchNorm       Kind = "batch_norm"        // x mean variance gamma beta -> y; Epsilon
	BatchNormUpdate Kind = "batch_norm_update" // mean variance running_mean running_variance -> both running ones, in place; Momentum; Length values had that mean and variance
	BatchNormGrad   Kind = "batch_norm_grad"   // x mean variance gamma dy -> dx dgamma dbeta; Epsilon

	Add Kind = "add" // a b -> a+b, equal shapes
	Mul Kind = "mul" // a b -> a*b, equal shapes

	Concat          Kind = "concat"           // two or more tensors, alike but for their extent along Dim, one after the other along it
	Slice           Kind = "slice"            // x -> y: Length elements along Dim from Begin on
	SliceDX         Kind = "slice_dx"         // dy -> dx: dy in its range, zeros elsewhere; Extent[0] is x's extent along Dim
	SliceAccumulate Kind = "slice_accumulate" // dx dy -> dx + dy within the range, in place in dx; Dim, Begin, Length

	Dropout   Kind = "dropout"    // x -> y; Rate, Key
	DropoutDX Kind = "dropout_dx" // dy -> dx; Rate and Key of the forward op: the mask is generated again, not kept

	SoftmaxXent   Kind = "softmax_xent"    // logits[N,C] labels[N] -> loss[1] probabilities[N,C]; the mean over the rows whose label is not negative
	SoftmaxXentDX Kind = "softmax_xent_dx" // probabilities labels -> dlogits

	SGD      Kind = "sgd"          // w dw -> w, in place; LearningRate
	Momentum Kind = "sgd_momentum" // w dw m -> w m, in place; LearningRate, Momentum
	Adam     Kind = "adam"         // w dw m v -> w m v, in place; LearningRate, Beta1, Beta2, Epsilon; its step is the iteration

	Accumulate Kind = "accumulate" // a b -> a+b, in place in a
	Scale      Kind = "scale"      // a -> a*Factor, in place
)

// Attrs holds what a kind needs beside its operands. Fields a kind does not name stay zero.
type Attrs struct {
	Kernel       [2]int  `json:"kernel,omitzero"`
	Stride       [2]int  `json:"stride,omitzero"`
	Pad          [2]int  `json:"pad,omitzero"`
	Extent       [2]int  `json:"extent,omitzero"` // of what conv2d_dx and pad make; of slice_dx [0] alone
	Groups       int     `json:"groups,omitzero"` // of channels that a convolution keeps apart; 0 is 1
	Inside       bool    `json:"inside,omitzero"` // avg_pool divides by the pixels that are not padding
	Dim          int     `json:"dim,omitzero"`    // that a concat or slice runs along
	Begin        int     `json:"begin,omitzero"`  // of a slice
	Length       int     `json:"length,omitzero"` // of a slice; channels in the window of an lrn; values that statistics are of
	Rate         float64 `json:"rate,omitzero"`   // share of elements that dropout clears
	Key          uint64  `json:"key,omitzero"`    // of the generator, the same for a dropout and its gradient
	Factor       float64 `json:"factor,omitzero"`
	Exponent     float64 `json:"exponent,omitzero"`
	LearningRate float64 `json:"learning_rate,omitzero"`
	Momentum     float64 `json:"momentum,omitzero"`
	Beta1        float64 `json:"beta1,omitzero"`
	Beta2        float64 `json:"beta2,omitzero"`
	Epsilon      float64 `json:"epsilon,omitzero"`

	TransposeA bool `json:"transpose_a,omitzero"` // a matmul's first matrix is stored as its transpose
	TransposeB bool `json:"transpose_b,omitzero"` // its second
	Causal     bool `json:"causal,omitzero"`      // a softmax's row sees no later column
}

// Cost is what an op does in the roofline's terms.
type Cost struct {
	FLOPs int64
	Bytes Bytes // read and written: each operand once, or the part of it that the op touches
}

// rule is what follows from a kind.
type rule struct {
	inputs  [2]int                                     // fewest and most
	inPlace []int                                      // per output: the input it updates, or fresh
	shapes  func(a Attrs, in []Shape) ([]Shape, error) // of the outputs
	flops   func(a Attrs, in, out []Shape) int64
}

// fresh marks an output that is a new storage.
const fresh = -1

// cost of an op of kind k, whose rule is r.
func (r rule) cost(k Kind, a Attrs, in, out []Shape) Cost {
	c := Cost{FLOPs: r.flops(a, in, out)}
	if partly, ok := traffic[k]; ok {
		c.Bytes = partly(a, in, out)
		return c
	}
	for _, shapes := range [2][]Shape{in, out} {
		for _, s := range shapes {
			c.Bytes += s.Bytes()
		}
	}
	return c
}

// Kinds returns every kind there is, in no order.
func Kinds() []Kind {
	kinds := make([]Kind, 0, len(rules))
	for k := range rules {
		kinds = append(kinds, k)
	}
	return kinds
}

// Infer returns the shapes of the outputs that an op of this kind makes.
func Infer(k Kind, a Attrs, in []Shape) ([]Shape, error) {
	r, ok := rules[k]
	if !ok {
		return nil, fmt.Errorf("unknown op kind %q", k)
	}
	if least, most := r.inputs[0], r.inputs[1]; len(in) < least || len(in) > most {
		if least == most {
			return nil, fmt.Errorf("%s takes %d inputs, got %d", k, least, len(in))
		}
		return nil, fmt.Errorf("%s takes %d to %d inputs, got %d", k, least, most, len(in))
	}
	if err := a.check(k); err != nil {
		return nil, fmt.Errorf("%s: %w", k, err)
	}
	out, err := r.shapes(a, in)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", k, err)
	}
	return out, nil
}

var rules = map[Kind]rule{
	Conv2D:   {[2]int{2, 3}, []int{fresh}, convShapes, convFLOPs},
	Conv2DDW: {[2]int{2, 2}, []int{fresh}, convDWShapes, convDWFLOPs},
	Conv2DDX: {[2]int{2, 2}, []int{fresh}, convDXShapes, convDXFLOPs},

	Linear:   {[2]int{2, 3}, []int{fresh}, linearShapes, linearFLOPs},
	LinearDW: {[2]int{2, 2}, []int{fresh}, linearDWShapes, linearDWFLOPs},
	LinearDX: {[2]int{2, 2}, []int{fresh}, linearDXShapes, linearDXFLOPs},

	BiasDB: {[2]int{1, 1}, []int{fresh}, biasShapes, perInput(1)},

	ReLU:   {[2]int{1, 1}, []int{fresh}, likeFirst(1), perOutput(1)},
	ReLUDX: {[2]int{3, 3}, []int{fresh}, likeFirst(1), perOutput(1)},

	MaxPool:   {[2]int{1, 1}, []int{fresh}, poolShapes, poolFLOPs},
	MaxPoolDX: {[2]int{3, 3}, []int{fresh}, poolDXShapes, poolDXFLOPs},
	AvgPool:   {[2]int{1, 1}, []int{fresh}, poolShapes, poolFLOPs},
	AvgPoolDX: {[2]int{3, 3}, []int{fresh}, poolDXShapes, poolDXFLOPs},

	Pad:   {[2]int{1, 1}, []int{fresh}, padShapes, none},
	LRN:   {[2]int{1, 1}, []int{fresh}, lrnShapes, lrnFLOPs},
	LRNDX: {[2]int{3, 3}, []int{fresh}, lrnDXShapes, lrnDXFLOPs},

	BatchNormStats:  {[2]int{1, 1}, []int{fresh, fresh}, statsShapes, perInput(4)},
	BatchNorm:       {[2]int{5, 5}, []int{fresh}, normShapes, perOutput(5)},
	BatchNormUpdate: {[2]int{4, 4}, []int{2, 3}, updateShapes, perOutput(3)},
	BatchNormGrad:   {[2]int{5, 5}, []int{fresh, fresh, fresh}, normGradShapes, perInput(11)},

	Add: {[2]int{2, 2}, []int{fresh}, likeFirst(1), perOutput(1)},
	Mul: {[2]int{2, 2}, []int{fresh}, likeFirst(1), perOutput(1)},

	Concat:          {[2]int{2, mostParts}, []int{fresh}, concatShapes, none},
	Slice:           {[2]int{1, 1}, []int{fresh}, sliceShapes, none},
	SliceDX:         {[2]int{1, 1}, []int{fresh}, sliceDXShapes, none},
	SliceAccumulate: {[2]int{2, 2}, []int{0}, sliceAccumulateShapes, perSecond(1)},

	Dropout:   {[2]int{1, 1}, []int{fresh}, likeFirst(1), perOutput(8)},
	DropoutDX: {[2]int{1, 1}, []int{fresh}, likeFirst(1), perOutput(8)},

	SoftmaxXent:   {[2]int{2, 2}, []int{fresh, fresh}, xentShapes, perInput(5)},
	SoftmaxXentDX: {[2]int{2, 2}, []int{fresh}, xentDXShapes, perOutput(2)},

	Embedding:   {[2]int{2, 2}, []int{fresh}, embeddingShapes, none},
	EmbeddingDW: {[2]int{2, 2}, []int{fresh}, embeddingDWShapes, perSecond(1)},

	Bias: {[2]int{2, 2}, []int{fresh}, biasAddShapes, perOutput(1)},

	LayerNorm:     {[2]int{3, 3}, []int{fresh, fresh, fresh}, layerNormShapes, perInput(8)},
	LayerNormGrad: {[2]int{5, 5}, []int{fresh, fresh, fresh}, layerNormGradShapes, perInput(14)},

	GELU:      {[2]int{1, 1}, []int{fresh}, likeFirst(1), perOutput(10)},
	GELUDX:    {[2]int{2, 2}, []int{fresh}, likeFirst(1), perOutput(16)},
	Sigmoid:   {[2]int{1, 1}, []int{fresh}, likeFirst(1), perOutput(4)},
	SigmoidDX: {[2]int{2, 2}, []int{fresh}, likeFirst(1), perOutput(3)},
	Tanh:      {[2]int{1, 1}, []int{fresh}, likeFirst(1), perOutput(6)},
	TanhDX:    {[2]int{2, 2}, []int{fresh}, likeFirst(1), perOutput(3)},

	Blend:     {[2]int{3, 3}, []int{fresh}, likeFirst(1), perOutput(4)},
	BlendGrad: {[2]int{4, 4}, []int{fresh, fresh, fresh}, likeFirst(3), perOutput(5)},

	MatMul:    {[2]int{2, 2}, []int{fresh}, matmulShapes, matmulFLOPs},
	Transpose: {[2]int{1, 1}, []int{fresh}, transposeShapes, none},
	Softmax:   {[2]int{1, 1}, []int{fresh}, softmaxShapes, perOutput(6)},
	SoftmaxDX: {[2]int{2, 2}, []int{fresh}, softmaxDXShapes, perOutput(5)},

	AdditiveScores:     {[2]int{3, 3}, []int{fresh}, scoresShapes, perScore(9)},
	AdditiveScoresGrad: {[2]int{4, 4}, []int{fresh, fresh, fresh}, scoresGradShapes, perScore(15)},

	LSTM:     {[2]int{1, 3}, []int{fresh, fresh}, lstmShapes, perInput(7)},
	LSTMGrad: {[2]int{2, 5}, []int{fresh, fresh}, lstmGradShapes, perInput(12)},

	MeanSquare:    {[2]int{2, 2}, []int{fresh}, pairLoss, perInput(3)},
	MeanSquareDX:  {[2]int{2, 2}, []int{fresh}, likeFirst(1), perOutput(2)},
	SigmoidXent:   {[2]int{2, 2}, []int{fresh}, pairLoss, perInput(8)},
	SigmoidXentDX: {[2]int{2, 2}, []int{fresh}, likeFirst(1), perOutput(6)},

	SGD:      {[2]int{2, 2}, []int{0}, optimizerShapes(2, 1), perOutput(2)},
	Momentum: {[2]int{3, 3}, []int{0, 2}, optimizerShapes(3, 2), perOutput(2)},
	Adam:     {[2]int{4, 4}, []int{0, 2, 3}, optimizerShapes(4, 3), perOutput(4)},

	Accumulate: {[2]int{2, 2}, []int{0}, likeFirst(1), perOutput(1)},
	Scale:      {[2]int{1, 1}, []int{0}, likeFirst(1), perOutput(1)},
}
