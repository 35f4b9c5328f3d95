package onnx

import (
	"fmt"
	"math"

	"tensile/graph"
)

// Functions of each element, of what graphs have. Where a function has a bend at zero its gradient there is that of
// PyTorch: biases begin as zero, and borders of images are black, so that many values are.

func (c *call) relu(x graph.TensorID) graph.TensorID { return c.op(graph.ReLU, graph.Attrs{}, x) }

// halves are what x has above zero, whose gradient at zero is 0, and below it, whose gradient there is 1.
func (c *call) halves(x graph.TensorID) (above, below graph.TensorID) {
	above = c.relu(x)
	return above, c.sumOf(x, c.affine(above, -1, 0))
}

// leaky is x above zero, and alpha·x below it.
func (c *call) leaky() error {
	alpha := c.float("alpha", 0.01)
	return unary(func(c *call, x graph.TensorID) graph.TensorID {
		above, below := c.halves(x)
		return c.sumOf(above, c.affine(below, alpha, 0))
	})(c)
}

// prelu is leaky with slopes that are trained.
func (c *call) prelu() error {
	x, s, err := c.shaped()
	if err != nil {
		return err
	}
	slope, err := c.weight(1)
	if err != nil {
		return err
	}
	if slope, err = c.spread(slope, s); err != nil {
		return err
	}
	above, below := c.halves(x)
	c.give(0, c.sumOf(above, c.product(c.withShape(below, s...), slope)), s)
	return nil
}

// exponential is scale·x above zero, and scale·alpha·(exp(x/width) - 1) below it: Elu, Selu or Celu.
func (c *call) exponential() error {
	alpha, scale, width := c.float("alpha", 1), 1.0, 1.0
	switch c.node.Op {
	case "Selu":
		alpha, scale = c.float("alpha", 1.67326319217681884765625), c.float("gamma", 1.05070102214813232421875)
	case "Celu":
		if width = alpha; alpha == 0 {
			return fmt.Errorf("its alpha is zero")
		}
	}
	return unary(func(c *call, x graph.TensorID) graph.TensorID {
		above, below := c.halves(x)
		power := c.op(graph.Exp, graph.Attrs{}, c.affine(below, 1/width, 0))
		return c.sumOf(c.affine(above, scale, 0), c.affine(power, scale*alpha, -scale*alpha))
	})(c)
}

// softplus is log(1 + exp(x)), which is what x has above zero and log(1 + exp(-|x|)): nothing overflows.
func (c *call) softplus(x graph.TensorID) graph.TensorID {
	above := c.relu(x)
	far := c.sumOf(x, c.affine(above, -2, 0)) // -|x|, whose gradient at zero is 1
	return c.sumOf(above, c.op(graph.Log, graph.Attrs{}, c.affine(c.op(graph.Exp, graph.Attrs{}, far), 1, 1)))
}

// mish is x·tanh(softplus(x)).
func (c *call) mish(x graph.TensorID) graph.TensorID {
	return c.product(x, c.op(graph.Tanh, graph.Attrs{}, c.softplus(x)))
}

// size is |x|, whose gradient at zero is 0.
func (c *call) size(x graph.TensorID) graph.TensorID {
	return c.sumOf(c.relu(x), c.relu(c.affine(x, -1, 0)))
}

// softsign is x/(1 + |x|).
func (c *call) softsign(x graph.TensorID) graph.TensorID {
	return c.product(x, c.power(c.affine(c.size(x), 1, 1), -1))
}

// swish is x·sigmoid(alpha·x).
func (c *call) swish() error {
	alpha := c.float("alpha", 1)
	return unary(func(c *call, x graph.TensorID) graph.TensorID {
		inner := x
		if alpha != 1 {
			inner = c.affine(x, alpha, 0)
		}
		return c.product(x, c.op(graph.Sigmoid, graph.Attrs{}, inner))
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

// clamped is x kept from low to high. What is between them is x to the last bit.
func (c *call) clamped(x graph.TensorID, low, high float64) graph.TensorID {
	switch {
	case low == 0:
		x = c.relu(x)
	case !math.IsInf(low, 0):
		x = c.sumOf(x, c.relu(c.affine(x, -1, low)))
	}
	if math.IsInf(high, 0) {
		return x
	}
	return c.sumOf(x, c.affine(c.relu(c.affine(x, 1, -high)), -1, 0))
}

func (c *call) clip() error {
	limits := [2]float64{c.float("min", math.Inf(-1)), c.float("max", math.Inf(1))}
	for k := range limits {
		if c.hasInput(k + 1) {
			var err error
			if limits[k], err = c.number(k + 1); err != nil {
				return err
			}
		}
		if math.Abs(limits[k]) >= math.MaxFloat32 {
			limits[k] = math.Inf(int(limits[k] / math.Abs(limits[k])))
		}
	}
	return unary(func(c *call, x graph.TensorID) graph.TensorID { return c.clamped(x, limits[0], limits[1]) })(c)
}

func (c *call) hardSigmoid() error {
	alpha, beta := c.float("alpha", 0.2), c.float("beta", 0.5)
	return unary(func(c *call, x graph.TensorID) graph.TensorID {
		return c.clamped(c.affine(x, alpha, beta), 0, 1)
	})(c)
}

func (c *call) hardSwish() error {
	return unary(func(c *call, x graph.TensorID) graph.TensorID {
		return c.op(graph.Mul, graph.Attrs{}, x, c.clamped(c.affine(x, 1.0/6, 0.5), 0, 1))
	})(c)
}
