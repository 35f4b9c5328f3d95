package onnx

import (
	"fmt"
	"math"

	"tensile/graph"
)

// operators are those that make ops.
var operators map[string]func(c *call) error

func init() {
	operators = map[string]func(c *call) error{
		"Add": (*call).addition, "Sub": (*call).subtraction, "Mul": (*call).multiplication, "Div": (*call).division,
		"Sum": (*call).total, "Mean": (*call).total, "Pow": (*call).pow, "Max": (*call).largest, "Min": (*call).largest,
		"Sqrt":       unary(func(c *call, x graph.TensorID) graph.TensorID { return c.power(x, 0.5) }),
		"Reciprocal": unary(func(c *call, x graph.TensorID) graph.TensorID { return c.power(x, -1) }),
		"Neg":        unary(func(c *call, x graph.TensorID) graph.TensorID { return c.affine(x, -1, 0) }),
		"Exp":        kind(graph.Exp), "Log": kind(graph.Log), "Erf": kind(graph.Erf), "Abs": unary((*call).size),
		"Greater": (*call).compare, "Less": (*call).compare, "GreaterOrEqual": (*call).compare,
		"LessOrEqual": (*call).compare, "Equal": (*call).compare, "IsNaN": (*call).isNaN, "And": (*call).logic,
		"Or": (*call).logic, "Xor": (*call).logic, "Not": (*call).logic, "Trilu": (*call).triangle,
		"RandomUniformLike": (*call).random,
		"Floor":             unary((*call).floor), "Ceil": unary((*call).ceiling), "Round": unary((*call).rounded),
		"Sign": unary((*call).sign), "Sin": unary((*call).sine), "Cos": unary((*call).cosine),
		"Where": (*call).selectElements, "CumSum": (*call).cumulative, "Einsum": (*call).einsum,
		"ReduceMean": (*call).reduce, "ReduceSum": (*call).reduce, "ReduceSumSquare": (*call).reduce,
		"ReduceL1": (*call).reduce, "ReduceL2": (*call).reduce, "ReduceMax": (*call).reduce,
		"ReduceMin": (*call).reduce, "ReduceLogSum": (*call).reduce, "ReduceLogSumExp": (*call).reduce,

		"Relu": kind(graph.ReLU), "Sigmoid": kind(graph.Sigmoid), "Tanh": kind(graph.Tanh), "Gelu": (*call).gelu,
		"Clip": (*call).clip, "HardSigmoid": (*call).hardSigmoid, "HardSwish": (*call).hardSwish,
		"LeakyRelu": (*call).leaky, "PRelu": (*call).prelu, "Elu": (*call).exponential, "Selu": (*call).exponential,
		"Celu": (*call).exponential, "Softplus": unary((*call).softplus), "Softsign": unary((*call).softsign),
		"Mish": unary((*call).mish), "Swish": (*call).swish,

		"Conv": (*call).conv, "ConvTranspose": (*call).convTranspose, "MaxPool": (*call).maxPool,
		"AveragePool": (*call).avgPool, "GlobalAveragePool": (*call).globalPool, "GlobalMaxPool": (*call).globalPool,
		"Resize": (*call).resize, "Upsample": (*call).resize, "Pad": (*call).pad,
		"DepthToSpace": (*call).depthToSpace, "SpaceToDepth": (*call).depthToSpace,

		"BatchNormalization": (*call).batchNorm, "LRN": (*call).lrn, "LayerNormalization": (*call).layerNorm,
		"InstanceNormalization": (*call).groupNorm, "GroupNormalization": (*call).groupNorm,

		"Gemm": (*call).gemm, "MatMul": (*call).matmul, "Softmax": (*call).softmax, "LogSoftmax": (*call).softmax,
		"LSTM": (*call).lstm, "GRU": (*call).gru, "RNN": (*call).rnn,
		"SoftmaxCrossEntropyLoss": (*call).crossEntropy, "Dropout": (*call).dropout,

		"Identity": (*call).identity, "Cast": (*call).identity, "CastLike": (*call).identity,
		"Reshape": (*call).reshape, "Flatten": (*call).reshape,
		"Squeeze": (*call).reshape, "Unsqueeze": (*call).reshape, "Transpose": (*call).transpose,
		"Concat": (*call).join, "Split": (*call).split, "Slice": (*call).cut, "Gather": (*call).gather,
		"Expand": (*call).expansion, "Tile": (*call).tile, "GatherND": (*call).gatherND,
		"GatherElements": (*call).gatherElements,
		"ScatterND":      (*call).scatterND,

		"SequenceConstruct": (*call).sequenceConstruct, "SequenceAt": (*call).sequenceAt,
		"SplitToSequence": (*call).splitToSequence, "ConcatFromSequence": (*call).concatFromSequence,

		"Adam": (*call).adam, "Adagrad": (*call).adagrad, "Momentum": (*call).momentum,
	}
}

// unary is an operator of one input of floats whose output has its shape.
func unary(of func(c *call, x graph.TensorID) graph.TensorID) func(c *call) error {
	return func(c *call) error {
		x, err := c.tensor(0)
		if err != nil {
			return err
		}
		v, _ := c.value(0)
		c.give(0, of(c, x), v.shape)
		return nil
	}
}

func kind(k graph.Kind) func(c *call) error {
	return unary(func(c *call, x graph.TensorID) graph.TensorID { return c.op(k, graph.Attrs{}, x) })
}

// two are the inputs of a binary operator. Of one that is known and the same everywhere there is only its number.
type two struct {
	a, b   graph.TensorID
	fill   [2]float64
	filled [2]bool
	shape  graph.Shape
}

func (c *call) two() (two, error) {
	var t two
	var shapes []graph.Shape
	for k, to := range []*graph.TensorID{&t.a, &t.b} {
		v, err := c.value(k)
		if err != nil {
			return t, err
		}
		shapes = append(shapes, v.shape)
		if v.known != nil {
			t.fill[k], t.filled[k] = v.known.uniform()
		}
		if !t.filled[k] || t.filled[0] {
			t.filled[k] = false
			if *to, err = c.operand(v); err != nil {
				return t, err
			}
		}
	}
	var err error
	t.shape, err = broadcast(shapes...)
	if err == nil && t.filled[0] && shapes[1].Elements() < t.shape.Elements() {
		t.b = c.expand(t.b, t.shape)
	}
	if err == nil && t.filled[1] && shapes[0].Elements() < t.shape.Elements() {
		t.a = c.expand(t.a, t.shape)
	}
	return t, err
}

// operand is the tensor of a value to be computed with.
func (c *call) operand(v *value) (graph.TensorID, error) {
	if v.whole && v.known == nil {
		return c.number32(v)
	}
	return c.tensorOf(v)
}

func (c *call) addition() error {
	t, err := c.two()
	if err != nil {
		return err
	}
	switch {
	case t.filled[0]:
		c.give(0, c.affine(t.b, 1, t.fill[0]), t.shape)
	case t.filled[1]:
		c.give(0, c.affine(t.a, 1, t.fill[1]), t.shape)
	default:
		c.give(0, c.add(t.a, t.b, t.shape), t.shape)
	}
	return nil
}

func (c *call) subtraction() error {
	t, err := c.two()
	if err != nil {
		return err
	}
	switch {
	case t.filled[0]:
		c.give(0, c.affine(t.b, -1, t.fill[0]), t.shape)
	case t.filled[1]:
		c.give(0, c.affine(t.a, 1, -t.fill[1]), t.shape)
	default:
		c.give(0, c.add(t.a, c.affine(t.b, -1, 0), t.shape), t.shape)
	}
	return nil
}

func (c *call) multiplication() error {
	t, err := c.two()
	if err != nil {
		return err
	}
	switch {
	case t.filled[0]:
		c.give(0, c.affine(t.b, t.fill[0], 0), t.shape)
	case t.filled[1]:
		c.give(0, c.affine(t.a, t.fill[1], 0), t.shape)
	default:
		c.give(0, c.mul(t.a, t.b, t.shape), t.shape)
	}
	return nil
}

func (c *call) division() error {
	t, err := c.two()
	if err != nil {
		return err
	}
	switch {
	case t.filled[0]:
		c.give(0, c.affine(c.power(t.b, -1), t.fill[0], 0), t.shape)
	case t.filled[1]:
		c.give(0, c.affine(t.a, 1/t.fill[1], 0), t.shape)
	default:
		c.give(0, c.mul(t.a, c.power(t.b, -1), t.shape), t.shape)
	}
	return nil
}

// total is Sum or Mean of any number of inputs.
func (c *call) total() error {
	y, err := c.tensor(0)
	if err != nil {
		return err
	}
	v, _ := c.value(0)
	shape := v.shape
	for k := 1; k < len(c.node.Inputs); k++ {
		x, err := c.tensor(k)
		if err != nil {
			return err
		}
		v, _ := c.value(k)
		if shape, err = broadcast(shape, v.shape); err != nil {
			return err
		}
		y = c.add(y, x, shape)
	}
	if n := len(c.node.Inputs); c.node.Op == "Mean" && n > 1 {
		y = c.affine(y, 1/float64(n), 0)
	}
	c.give(0, y, shape)
	return nil
}

func (c *call) pow() error {
	k, err := c.constantInput(1)
	if err != nil {
		return err
	}
	e, ok := k.uniform()
	if !ok {
		return fmt.Errorf("its exponents differ: one exponent is supported")
	}
	return unary(func(c *call, x graph.TensorID) graph.TensorID {
		if e == 2 {
			return c.op(graph.Mul, graph.Attrs{}, x, x)
		}
		return c.power(x, e)
	})(c)
}

// selectElements chooses by a known condition: a·m + b·(1-m), with a known number in place of what is not chosen.
func (c *call) selectElements() error {
	if v, err := c.value(0); err != nil {
		return err
	} else if v.known == nil && v.init == nil {
		return c.choose(v)
	}
	condition, err := c.constantInput(0)
	if err != nil {
		return err
	}
	var shapes [3]graph.Shape
	for k := range shapes {
		v, _ := c.value(k)
		if v == nil {
			return fmt.Errorf("its input %d is missing", k)
		}
		shapes[k] = v.shape
	}
	to, err := broadcast(shapes[:]...)
	if err != nil {
		return err
	}
	if holds, ok := condition.uniform(); ok { // one of them all
		k := 2 - int(oneIf(holds != 0))
		v, _ := c.value(k)
		x, err := c.number32(v)
		if err == nil {
			c.give(0, c.expand(x, to), to)
		}
		return err
	}
	var sum graph.TensorID = missing
	for k := 1; k <= 2; k++ {
		mask, err := c.numbers(condition.elements())
		if err != nil {
			return err
		}
		for i := range mask {
			mask[i] = oneIf((condition.int(i) != 0) == (k == 1))
		}
		v, _ := c.value(k)
		var term graph.TensorID
		if fill, ok := uniformOf(v); ok {
			fill = max(-math.MaxFloat32, min(math.MaxFloat32, fill))
			for i := range mask {
				mask[i] *= fill
			}
			if fill == 0 && sum != missing {
				continue
			}
			if term, err = c.constant(condition.shape, mask); err != nil {
				return err
			}
		} else {
			x, err := c.tensorOf(v)
			if err != nil {
				return err
			}
			m, err := c.constant(condition.shape, mask)
			if err != nil {
				return err
			}
			term = c.mul(x, m, to)
		}
		if sum == missing {
			sum = term
		} else {
			sum = c.add(sum, term, to)
		}
	}
	c.give(0, c.expand(sum, to), to)
	return nil
}

func uniformOf(v *value) (float64, bool) {
	if v.known == nil {
		return 0, false
	}
	return v.known.uniform()
}

// largest is the largest of any number of inputs, or the least. Of several that are equal the first takes the gradient.
func (c *call) largest() error {
	sign := 1.0
	if c.node.Op == "Min" {
		sign = -1
	}
	var shapes []graph.Shape
	var parts []graph.TensorID
	for k := range c.node.Inputs {
		x, err := c.tensor(k)
		if err != nil {
			return err
		}
		v, _ := c.value(k)
		shapes, parts = append(shapes, v.shape), append(parts, x)
	}
	to, err := broadcast(shapes...)
	if err != nil {
		return err
	}
	n := to.Elements()
	for k, x := range parts {
		if x = c.expand(x, to); sign < 0 {
			x = c.affine(x, -1, 0)
		}
		parts[k] = c.withShape(x, 1, n)
	}
	y := c.maximum(c.concat(0, parts...), 1, len(parts), n)
	if sign < 0 {
		y = c.affine(y, -1, 0)
	}
	c.give(0, c.withShape(y, to...), to)
	return nil
}

// maximum is the largest over the middle dimension of three.
func (c *call) maximum(t graph.TensorID, outer, n, inner int) graph.TensorID {
	if n == 1 {
		return t
	}
	return c.op(graph.MaxPool, graph.Attrs{Kernel: [2]int{n, 1}, Stride: [2]int{1, 1}}, c.withShape(t, 1, outer, n,
		inner))
}

// reduce is a sum, a mean, an extreme or a norm over some dimensions or all.
func (c *call) reduce() error {
	x, s, err := c.shaped()
	if err != nil {
		return err
	}
	axes, given, err := c.axes(1)
	if err != nil {
		return err
	}
	over := make([]bool, len(s))
	for _, a := range axes {
		d, err := place(a, len(s))
		if err != nil {
			return err
		}
		over[d] = true
	}
	if !given || len(axes) == 0 {
		if c.int("noop_with_empty_axes", 0) != 0 {
			c.give(0, x, s)
			return nil
		}
		for d := range over {
			over[d] = true
		}
	}
	var y graph.TensorID
	var shape graph.Shape
	switch c.node.Op {
	case "ReduceSum":
		y, shape = c.sum(x, s, over)
	case "ReduceMean":
		y, shape = c.sum(x, s, over)
		y = c.affine(y, float64(shape.Elements())/float64(s.Elements()), 0)
	case "ReduceSumSquare":
		y, shape = c.sum(c.product(x, x), s, over)
	case "ReduceL1":
		y, shape = c.sum(c.size(x), s, over)
	case "ReduceL2":
		y, shape = c.sum(c.product(x, x), s, over)
		y = c.affine(c.power(c.affine(y, 1, 0x1p-126), 0.5), 1, -0x1p-63) // where all are 0 the slope is finite
	case "ReduceMax":
		y, shape = c.reduced(x, s, over, c.maximum)
	case "ReduceMin":
		y, shape = c.reduced(c.affine(x, -1, 0), s, over, c.maximum)
		y = c.affine(y, -1, 0)
	case "ReduceLogSum":
		y, shape = c.sum(x, s, over)
		y = c.op(graph.Log, graph.Attrs{}, y)
	case "ReduceLogSumExp": // of what is left when the largest is taken off, so that nothing overflows
		largest, _ := c.reduced(x, s, over, c.maximum)
		rest := c.sumOf(c.withShape(x, full(s)...), c.affine(c.expand(largest, full(s)), -1, 0))
		y, shape = c.sum(c.op(graph.Exp, graph.Attrs{}, rest), s, over)
		y = c.sumOf(c.op(graph.Log, graph.Attrs{}, y), largest)
	}
	if c.int("keepdims", 1) == 0 {
		left := graph.Shape{}
		for d, n := range shape {
			if !over[d] {
				left = append(left, n)
			}
		}
		shape = left
	}
	c.give(0, c.withShape(y, shape...), shape)
	return nil
}

// cumulative is the sum of all elements up to each, along a dimension.
func (c *call) cumulative() error {
	x, s, err := c.shaped()
	if err != nil {
		return err
	}
	k, err := c.number(1)
	if err != nil {
		return err
	}
	axis, err := place(int64(k), len(s))
	if err != nil {
		return err
	}
	n, exclusive := s[axis], int(c.int("exclusive", 0))
	matrix, err := c.numbers(n * n)
	if err != nil {
		return err
	}
	for i := range n {
		for j := range n {
			from, to := i, j
			if c.int("reverse", 0) != 0 {
				from, to = j, i
			}
			matrix[i*n+j] = oneIf(from+exclusive <= to)
		}
	}
	if x, err = c.mapped(x, axis, n, matrix); err != nil {
		return err
	}
	c.give(0, x, s)
	return nil
}
