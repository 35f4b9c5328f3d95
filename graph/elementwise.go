package graph

import "slices"

// Operators that treat each element alike. Operand orders are part of a kind's meaning.
const (
	ReLU       Kind = "relu"       // x -> y
	ReLUDX     Kind = "relu_dx"    // x y dy -> dx, as cudnnActivationBackward reads them
	ReLUYDX    Kind = "relu_y_dx"  // y dy -> dx: dy where y is positive, as x is there; it chooses of any values, too
	GELU       Kind = "gelu"       // x -> x*Φ(x), by the error function
	GELUDX     Kind = "gelu_dx"    // x dy -> dx
	Sigmoid    Kind = "sigmoid"    // x -> y
	SigmoidDX  Kind = "sigmoid_dx" // y dy -> dx
	Tanh       Kind = "tanh"       // x -> y
	TanhDX     Kind = "tanh_dx"    // y dy -> dx
	Add        Kind = "add"        // a b -> a+b, equal shapes
	Mul        Kind = "mul"        // a b -> a*b, equal shapes
	Blend      Kind = "blend"      // t a b -> t*a + (1-t)*b, equal shapes
	BlendGrad  Kind = "blend_grad" // t a b dy -> dt da db
	Dropout    Kind = "dropout"    // x -> y; Rate, Key
	DropoutDX  Kind = "dropout_dx" // dy -> dx; Rate and Key of the forward op: the mask is generated again, not kept
	Accumulate Kind = "accumulate" // a b -> a+b, in place in a
	Scale      Kind = "scale"      // a -> a*Factor, in place
	Affine     Kind = "affine"     // x -> x*Factor + Shift
	Power      Kind = "power"      // x -> x to the power Exponent
	Exp        Kind = "exp"        // x -> e to the power x
	Log        Kind = "log"        // x -> its natural logarithm
	Erf        Kind = "erf"        // x -> the error function of x
)

var elementwise = map[Kind]kind{
	ReLU:      {inputs: [2]int{1, 1}, outputs: []int{fresh}, shapes: likeFirst(1), flops: perOutput(1)},
	ReLUDX:    {inputs: [2]int{3, 3}, outputs: []int{fresh}, shapes: likeFirst(1), flops: perOutput(1)},
	ReLUYDX:   {inputs: [2]int{2, 2}, outputs: []int{fresh}, shapes: likeFirst(1), flops: perOutput(1)},
	GELU:      {inputs: [2]int{1, 1}, outputs: []int{fresh}, shapes: likeFirst(1), flops: perOutput(10)},
	GELUDX:    {inputs: [2]int{2, 2}, outputs: []int{fresh}, shapes: likeFirst(1), flops: perOutput(16)},
	Sigmoid:   {inputs: [2]int{1, 1}, outputs: []int{fresh}, shapes: likeFirst(1), flops: perOutput(4)},
	SigmoidDX: {inputs: [2]int{2, 2}, outputs: []int{fresh}, shapes: likeFirst(1), flops: perOutput(3)},
	Tanh:      {inputs: [2]int{1, 1}, outputs: []int{fresh}, shapes: likeFirst(1), flops: perOutput(6)},
	TanhDX:    {inputs: [2]int{2, 2}, outputs: []int{fresh}, shapes: likeFirst(1), flops: perOutput(3)},
	Add:       {inputs: [2]int{2, 2}, outputs: []int{fresh}, shapes: likeFirst(1), flops: perOutput(1)},
	Mul:       {inputs: [2]int{2, 2}, outputs: []int{fresh}, shapes: likeFirst(1), flops: perOutput(1)},
	Blend:     {inputs: [2]int{3, 3}, outputs: []int{fresh}, shapes: likeFirst(1), flops: perOutput(4)},
	BlendGrad: {inputs: [2]int{4, 4}, outputs: []int{fresh, fresh, fresh}, shapes: likeFirst(3), flops: perOutput(5)},
	Dropout: {inputs: [2]int{1, 1}, outputs: []int{fresh}, shapes: likeFirst(1), flops: perOutput(8),
		attrs: names("rate", "key"), check: rateCheck},
	DropoutDX: {inputs: [2]int{1, 1}, outputs: []int{fresh}, shapes: likeFirst(1), flops: perOutput(8),
		attrs: names("rate", "key"), check: rateCheck},
	Accumulate: {inputs: [2]int{2, 2}, outputs: []int{0}, shapes: likeFirst(1), flops: perOutput(1)},
	Scale: {inputs: [2]int{1, 1}, outputs: []int{0}, shapes: likeFirst(1), flops: perOutput(1),
		attrs: names("factor")},
	Affine: {inputs: [2]int{1, 1}, outputs: []int{fresh}, shapes: likeFirst(1), flops: perOutput(2),
		attrs: names("factor", "shift")},
	Power: {inputs: [2]int{1, 1}, outputs: []int{fresh}, shapes: likeFirst(1), flops: perOutput(10),
		attrs: names("exponent")},
	Exp: {inputs: [2]int{1, 1}, outputs: []int{fresh}, shapes: likeFirst(1), flops: perOutput(4)},
	Log: {inputs: [2]int{1, 1}, outputs: []int{fresh}, shapes: likeFirst(1), flops: perOutput(6)},
	Erf: {inputs: [2]int{1, 1}, outputs: []int{fresh}, shapes: likeFirst(1), flops: perOutput(8)},
}

// overwrites are the operands in whose place the first output of an op may be made (Attrs.InPlace), per kind. A kernel
// reads what it needs of an element of them before it writes that element. Of a normalisation or a softmax, which sum
// over a channel or a row first, it reads all of that before it writes any.
var overwrites = map[Kind][]int{
	ReLU: {0}, Sigmoid: {0}, Tanh: {0}, Dropout: {0}, Add: {0, 1}, Mul: {0, 1}, Bias: {0}, Softmax: {0},
	ReLUDX: {2}, ReLUYDX: {1}, GELUDX: {1}, SigmoidDX: {1}, TanhDX: {1}, DropoutDX: {0}, SoftmaxDX: {1},
	BatchNormGrad: {4, 0}, LayerNormGrad: {4},
}

// likeFirst is the rule of an elementwise op: all operands and outputs are alike.
func likeFirst(outputs int) func(Attrs, []Shape) ([]Shape, error) {
	return func(_ Attrs, in []Shape) ([]Shape, error) {
		for _, s := range in[1:] {
			if err := checkExtents("operand", s, in[0]...); err != nil {
				return nil, err
			}
		}
		return slices.Repeat([]Shape{in[0]}, outputs), nil
	}
}

func rateCheck(a Attrs) error { return share("rate", a.Rate) }
