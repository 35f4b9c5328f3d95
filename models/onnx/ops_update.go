package onnx

import (
	"fmt"
	"math"

	"tensile/graph"
)

// Updates of ai.onnx.preview.training, as ops of what they are given. Trainings have updates of their own: these are
// here so that their cases can be run. Inputs are R and T, then all X, all G, and all of each state.

// update applies of to each parameter with the rate of its step, its gradient (with the part of the norm) and states.
func (c *call) update(states int,
	of func(rate float64, x, g graph.TensorID, state []graph.TensorID) []graph.TensorID) error {
	rate, err := c.number(0)
	if err != nil {
		return err
	}
	step, err := c.number(1)
	if err != nil {
		return err
	}
	n := (len(c.node.Inputs) - 2) / (2 + states)
	if n < 1 || len(c.node.Inputs) != 2+n*(2+states) {
		return fmt.Errorf("it has %d inputs, want R, T and %d a parameter", len(c.node.Inputs), 2+states)
	}
	r := rate / (1 + step*c.float("decay_factor", 0))
	for i := range n {
		var in []graph.TensorID
		for k := range 2 + states {
			t, err := c.tensor(2 + k*n + i)
			if err != nil {
				return err
			}
			in = append(in, t)
		}
		g := in[1]
		if norm := c.float("norm_coefficient", 0); norm != 0 {
			g = c.sumOf(g, c.affine(in[0], norm, 0))
		}
		v, _ := c.value(2 + i)
		for k, t := range of(r, in[0], g, in[2:]) {
			c.give(k*n+i, t, v.shape)
		}
	}
	return nil
}

func (c *call) sumOf(a, b graph.TensorID) graph.TensorID { return c.op(graph.Add, graph.Attrs{}, a, b) }

func (c *call) product(a, b graph.TensorID) graph.TensorID {
	return c.op(graph.Mul, graph.Attrs{}, a, b)
}

// adagrad: H += G², X -= R·G/(√H + epsilon).
func (c *call) adagrad() error {
	return c.update(1, func(rate float64, x, g graph.TensorID, s []graph.TensorID) []graph.TensorID {
		h := c.sumOf(s[0], c.product(g, g))
		root := c.affine(c.power(h, 0.5), 1, c.float("epsilon", 0))
		return []graph.TensorID{c.sumOf(x, c.affine(c.product(g, c.power(root, -1)), -rate, 0)), h}
	})
}

// momentum: V = alpha·V + beta·G with beta 1 in the first step, X -= R·V; or X -= R·(G + alpha·V) by Nesterov.
func (c *call) momentum() error {
	step, err := c.number(1)
	if err != nil {
		return err
	}
	alpha, beta := c.float("alpha", 0), c.float("beta", 0)
	if step == 0 {
		beta = 1
	}
	return c.update(1, func(rate float64, x, g graph.TensorID, s []graph.TensorID) []graph.TensorID {
		v := c.sumOf(c.affine(s[0], alpha, 0), c.affine(g, beta, 0))
		by := v
		if c.text("mode", "standard") == "nesterov" {
			by = c.sumOf(g, c.affine(v, alpha, 0))
		}
		return []graph.TensorID{c.sumOf(x, c.affine(by, -rate, 0)), v}
	})
}

// adam: V = alpha·V + (1-alpha)·G, H = beta·H + (1-beta)·G², X = (1-post)·(X - R'·V/(√H + epsilon)), where R' has the
// correction of both biases after the first step.
func (c *call) adam() error {
	step, err := c.number(1)
	if err != nil {
		return err
	}
	alpha, beta := c.float("alpha", 0.9), c.float("beta", 0.999)
	correct := 1.0
	if step > 0 {
		correct = math.Sqrt(1-math.Pow(beta, step)) / (1 - math.Pow(alpha, step))
	}
	return c.update(2, func(rate float64, x, g graph.TensorID, s []graph.TensorID) []graph.TensorID {
		v := c.sumOf(c.affine(s[0], alpha, 0), c.affine(g, 1-alpha, 0))
		h := c.sumOf(c.affine(s[1], beta, 0), c.affine(c.product(g, g), 1-beta, 0))
		root := c.affine(c.power(h, 0.5), 1, c.float("epsilon", 0))
		x = c.sumOf(x, c.affine(c.product(v, c.power(root, -1)), -rate*correct, 0))
		if post := c.float("norm_coefficient_post", 0); post != 0 {
			x = c.affine(x, 1-post, 0)
		}
		return []graph.TensorID{x, v, h}
	})
}
