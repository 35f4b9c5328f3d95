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
		"Sum": (*call).total, "Mean": (*call).total, "Pow": (*call).pow,
		"Sqrt":       unary(func(c *call, x graph.TensorID) graph.TensorID { return c.power(x, 0.5) }),
		"Reciprocal": unary(func(c *call, x graph.TensorID) graph.TensorID { return c.power(x, -1) }),
		"Neg":        unary(func(c *call, x graph.TensorID) graph.TensorID { return c.affine(x, -1, 0) }),
		"Relu":       kind(graph.ReLU), "Sigmoid": kind(graph.Sigmoid), "Tanh": kind(graph.Tanh),
		"Exp": kind(graph.Exp),
		"Log": kind(graph.Log), "Erf": kind(graph.Erf), "Gelu": (*call).gelu, "Clip": (*call).clip,
		"LeakyRelu": (*call).leaky,
		"Where":     (*call).where, "ReduceMean": (*call).reduce, "ReduceSum": (*call).reduce,
		"ReduceSumSquare": (*call).reduce,
		"ReduceL2":        (*call).reduce, "HardSigmoid": (*call).hardSigmoid, "HardSwish": (*call).hardSwish,

		"Conv": (*call).conv, "MaxPool": (*call).maxPool, "AveragePool": (*call).avgPool,
		"GlobalAveragePool": (*call).globalPool, "BatchNormalization": (*call).batchNorm, "LRN": (*call).lrn,
		"LayerNormalization": (*call).layerNorm, "Pad": (*call).pad,

		"Gemm": (*call).gemm, "MatMul": (*call).matmul, "Softmax": (*call).softmax, "LogSoftmax": (*call).softmax,
		"LSTM": (*call).lstm, "SoftmaxCrossEntropyLoss": (*call).crossEntropy, "Dropout": (*call).dropout,

		"Identity": (*call).identity, "Cast": (*call).identity, "Reshape": (*call).reshape, "Flatten": (*call).reshape,
		"Squeeze": (*call).reshape, "Unsqueeze": (*call).reshape, "Transpose": (*call).transpose,
		"Concat": (*call).join, "Split": (*call).split, "Slice": (*call).cut, "Gather": (*call).gather,
		"Expand": (*call).expansion,

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
			if *to, err = c.tensorOf(v); err != nil {
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
	k, err := c.known(1)
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

// gelu by the error function, or by its approximation 0.5·x·(1 + tanh(√(2/π)·(x + 0.044715·x³))).
func (c *call) gelu() error {
	switch c.text("approximate", "none") {
	case "none":
		return kind(graph.GELU)(c)
	case "tanh":
		return unary(func(c *call, x graph.TensorID) graph.TensorID {
			root := math.Sqrt(2 / math.Pi)
			cube := c.op(graph.Mul, graph.Attrs{}, x, c.op(graph.Mul, graph.Attrs{}, x, x))
			inner := c.op(graph.Add, graph.Attrs{}, c.affine(x, root, 0), c.affine(cube, 0.044715*root, 0))
			return c.op(graph.Mul, graph.Attrs{}, x, c.affine(c.op(graph.Tanh, graph.Attrs{}, inner), 0.5, 0.5))
		})(c)
	}
	return fmt.Errorf("approximation %.40q is none of none and tanh", c.text("approximate", ""))
}

// between is x kept from low to high by two ReLUs.
func (c *call) between(x graph.TensorID, low, high float64) graph.TensorID {
	if !math.IsInf(low, 0) {
		x = c.op(graph.ReLU, graph.Attrs{}, c.affine(x, 1, -low))
	}
	switch {
	case math.IsInf(high, 0) && math.IsInf(low, 0):
		return x
	case math.IsInf(high, 0):
		return c.affine(x, 1, low)
	case math.IsInf(low, 0):
		low = 0
	}
	return c.affine(c.op(graph.ReLU, graph.Attrs{}, c.affine(x, -1, high-low)), -1, high)
}

func (c *call) clip() error {
	limits := [2]float64{c.float("min", math.Inf(-1)), c.float("max", math.Inf(1))}
	for k := range limits {
		if c.has(k + 1) {
			var err error
			if limits[k], err = c.number(k + 1); err != nil {
				return err
			}
		}
		if math.Abs(limits[k]) >= math.MaxFloat32 {
			limits[k] = math.Inf(int(limits[k] / math.Abs(limits[k])))
		}
	}
	return unary(func(c *call, x graph.TensorID) graph.TensorID { return c.between(x, limits[0], limits[1]) })(c)
}

func (c *call) hardSigmoid() error {
	alpha, beta := c.float("alpha", 0.2), c.float("beta", 0.5)
	return unary(func(c *call, x graph.TensorID) graph.TensorID {
		return c.between(c.affine(x, alpha, beta), 0, 1)
	})(c)
}

func (c *call) hardSwish() error {
	return unary(func(c *call, x graph.TensorID) graph.TensorID {
		return c.op(graph.Mul, graph.Attrs{}, x, c.between(c.affine(x, 1.0/6, 0.5), 0, 1))
	})(c)
}

// leaky is relu(x) - alpha·relu(-x).
func (c *call) leaky() error {
	alpha := c.float("alpha", 0.01)
	return unary(func(c *call, x graph.TensorID) graph.TensorID {
		below := c.op(graph.ReLU, graph.Attrs{}, c.affine(x, -1, 0))
		return c.op(graph.Add, graph.Attrs{}, c.op(graph.ReLU, graph.Attrs{}, x), c.affine(below, -alpha, 0))
	})(c)
}

// where chooses by a known condition: a·m + b·(1-m), with a known number in the place of what is not chosen.
func (c *call) where() error {
	condition, err := c.known(0)
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

// reduce is a sum, a mean, or the sum of squares or its root, over some dimensions or all.
func (c *call) reduce() error {
	x, err := c.tensor(0)
	if err != nil {
		return err
	}
	v, _ := c.value(0)
	axes, given, err := c.axes(1)
	if err != nil {
		return err
	}
	over := make([]bool, len(v.shape))
	for _, a := range axes {
		d, err := place(a, len(v.shape))
		if err != nil {
			return err
		}
		over[d] = true
	}
	if !given || len(axes) == 0 {
		if c.int("noop_with_empty_axes", 0) != 0 {
			c.give(0, x, v.shape)
			return nil
		}
		for d := range over {
			over[d] = true
		}
	}
	if c.node.Op == "ReduceSumSquare" || c.node.Op == "ReduceL2" {
		x = c.op(graph.Mul, graph.Attrs{}, x, x)
	}
	y, shape := c.sum(x, v.shape, over)
	switch c.node.Op {
	case "ReduceMean":
		y = c.affine(y, float64(shape.Elements())/float64(v.shape.Elements()), 0)
	case "ReduceL2":
		y = c.power(y, 0.5)
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
	c.give(0, c.as(y, shape...), shape)
	return nil
}
