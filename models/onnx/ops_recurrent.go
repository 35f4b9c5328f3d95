package onnx

import (
	"fmt"
	"maps"
	"slices"

	"tensile/graph"
)

// maxSteps bounds the steps of a recurrent operator, each of which has ops of its own.
const maxSteps = 1 << 12

// recurrence is a recurrent operator: what all of them have.
type recurrence struct {
	x                   graph.TensorID // [S,N,I]
	steps, batch, width int
	directions, hidden  int
	reverse, batchFirst bool
	in                  map[int]graph.TensorID // the other inputs; missing: left out
}

// recurrence reads a recurrent operator whose weights have one block of rows per gate: x[S,N,I], or [N,S,I] with
// layout 1. more are its inputs beside weights, biases and the first h: 0 for one of shape [directions,N,H], else
// the n of [directions,n·H].
func (c *call) recurrence(gates int, more map[int]int) (*recurrence, error) {
	x, s, err := c.shaped()
	if err != nil {
		return nil, err
	}
	if len(s) != 3 {
		return nil, fmt.Errorf("its input has shape %v, want three dimensions", s)
	}
	for _, name := range []string{"activation_alpha", "activation_beta", "clip"} {
		if a := c.attribute(name); a != nil {
			return nil, fmt.Errorf("its attribute %s is not supported", name)
		}
	}
	rec := &recurrence{batchFirst: c.int("layout", 0) != 0, in: make(map[int]graph.TensorID)}
	if rec.batchFirst {
		x = c.permute(x, []int{1, 0, 2})
	}
	s = c.b.Shape(x)
	rec.x, rec.steps, rec.batch, rec.width = x, s[0], s[1], s[2]
	if rec.steps > maxSteps {
		return nil, fmt.Errorf("it has %d steps, of which %d are supported", rec.steps, maxSteps)
	}
	r, err := c.weight(2)
	if err != nil {
		return nil, err
	}
	rs := c.b.Shape(r)
	if len(rs) != 3 || rs[0] > 2 || rs[2] < 1 {
		return nil, fmt.Errorf("its weights have shape %v, want [directions,%dH,H]", rs, gates)
	}
	rec.directions, rec.hidden = rs[0], rs[2]
	rec.reverse = c.text("direction", "forward") == "reverse"
	if c.hasInput(4) {
		lengths, err := c.constantInput(4)
		if err != nil {
			return nil, err
		}
		if n, ok := lengths.uniform(); !ok || int(n) != rec.steps {
			return nil, fmt.Errorf("its sequences have lengths of their own, which is not supported")
		}
	}
	state := graph.Shape{rec.directions, rec.batch, rec.hidden}
	shapes := map[int]graph.Shape{1: {rec.directions, gates * rec.hidden, rec.width},
		2: {rec.directions, gates * rec.hidden, rec.hidden}, 3: {rec.directions, 2 * gates * rec.hidden}, 5: state}
	for k, rows := range more {
		shapes[k] = state
		if rows > 0 {
			shapes[k] = graph.Shape{rec.directions, rows * rec.hidden}
		}
	}
	for _, k := range slices.Sorted(maps.Keys(shapes)) {
		shape := shapes[k]
		rec.in[k] = missing
		if !c.hasInput(k) {
			continue
		}
		first := len(shape) == 3 && k > 2 // h or memory before the first step
		u, _ := c.value(k)
		if fill, ok := uniformOf(u); ok && fill == 0 && first {
			continue
		}
		t, err := c.weight(k)
		if err != nil {
			return nil, err
		}
		if rec.batchFirst && first {
			shape = graph.Shape{shape[1], shape[0], shape[2]}
		}
		if got := c.b.Shape(t); !slices.Equal(got, shape) {
			return nil, fmt.Errorf("its input %d has shape %v, want %v", k, got, shape)
		}
		if rec.batchFirst && first {
			t = c.permute(t, []int{1, 0, 2})
		}
		rec.in[k] = t
	}
	if rec.in[1] == missing {
		return nil, fmt.Errorf("its input 1 is missing")
	}
	return rec, nil
}

// zeros are a constant of zeros.
func (c *call) zeros(shape graph.Shape) (graph.TensorID, error) {
	zeros, err := c.numbers(shape.Elements())
	if err != nil {
		return missing, err
	}
	return c.constant(shape, zeros)
}

// functions are the names of the activations of direction d.
func (c *call) functions(d int, otherwise ...string) ([]string, error) {
	a := c.setting("activations", AttributeStrings)
	if a == nil || len(a.Strings) == 0 {
		return otherwise, nil
	}
	n := len(otherwise)
	if len(a.Strings) < (d+1)*n {
		return nil, fmt.Errorf("it has activations %.80q, want %d a direction", a.Strings, n)
	}
	return a.Strings[d*n : (d+1)*n], nil
}

// states makes the outputs of a recurrent operator: of all directions, all h[S,1,N,H], and the last states [1,N,H],
// each an output.
func (c *call) states(rec *recurrence, ys []graph.TensorID, last ...[]graph.TensorID) {
	y := c.withShape(c.concat(1, ys...), rec.steps, rec.directions, rec.batch, rec.hidden)
	if rec.batchFirst {
		y = c.permute(y, []int{2, 0, 1, 3})
	}
	c.give(0, y, c.b.Shape(y))
	for k, parts := range last {
		t := c.concat(0, parts...)
		if rec.batchFirst {
			t = c.permute(t, []int{1, 0, 2})
		}
		c.give(k+1, t, c.b.Shape(t))
	}
}

// walk unrolls each direction of an operator whose only state is h: below is what comes from below for all steps, and
// step makes h[N,H] of that of one step and h before.
func (c *call) walk(rec *recurrence, gates int, direction func(d int, names []string) (
	step func(below, h graph.TensorID) graph.TensorID), names ...string) error {
	var ys, hs []graph.TensorID
	for d := range rec.directions {
		f, err := c.functions(d, names...)
		if err != nil {
			return err
		}
		for _, name := range f {
			if !slices.Contains([]string{"Tanh", "Relu", "Sigmoid"}, name) {
				return fmt.Errorf("its activations %.80q are not supported", f)
			}
		}
		operands := []graph.TensorID{c.withShape(rec.x, rec.steps*rec.batch, rec.width), c.rows(rec, 1, d, 0, gates)}
		if rec.in[3] != missing {
			operands = append(operands, c.rows(rec, 3, d, 0, gates))
		}
		width := gates * rec.hidden
		below := c.withShape(c.op(graph.Linear, graph.Attrs{}, operands...), rec.steps, rec.batch, width)
		var h graph.TensorID
		if rec.in[5] != missing {
			h = c.withShape(c.slice(rec.in[5], 0, d, 1), rec.batch, rec.hidden)
		} else if h, err = c.zeros(graph.Shape{rec.batch, rec.hidden}); err != nil {
			return err
		}
		step := direction(d, f)
		all := make([]graph.TensorID, rec.steps)
		for i := range rec.steps {
			if rec.reverse || d == 1 {
				i = rec.steps - 1 - i
			}
			h = step(c.withShape(c.slice(below, 0, i, 1), rec.batch, width), h)
			all[i] = c.withShape(h, 1, 1, rec.batch, rec.hidden)
		}
		ys, hs = append(ys, c.concat(0, all...)), append(hs, c.withShape(h, 1, rec.batch, rec.hidden))
	}
	c.states(rec, ys, hs)
	return c.b.Err()
}

// rows are the blocks of some gates of direction d in input k: a matrix [n·H,...], or of the biases a row [n·H].
func (c *call) rows(rec *recurrence, k, d, first, n int) graph.TensorID {
	t := c.slice(c.slice(rec.in[k], 0, d, 1), 1, first*rec.hidden, n*rec.hidden)
	return c.withShape(t, c.b.Shape(t)[1:]...)
}

// recurrent are the operands of a product of h with the weights of some of the operator's gates.
func (c *call) recurrent(rec *recurrence, d, first, n, gates int) (weights []graph.TensorID) {
	weights = []graph.TensorID{c.rows(rec, 2, d, first, n)}
	if rec.in[3] != missing {
		weights = append(weights, c.rows(rec, 3, d, gates+first, n))
	}
	return weights
}

func (c *call) linear(x graph.TensorID, weights []graph.TensorID) graph.TensorID {
	return c.op(graph.Linear, graph.Attrs{}, append([]graph.TensorID{x}, weights...)...)
}

// activation is a function of a recurrent operator.
func (c *call) activation(name string, x graph.TensorID) graph.TensorID {
	return c.op(map[string]graph.Kind{"Tanh": graph.Tanh, "Relu": graph.ReLU, "Sigmoid": graph.Sigmoid}[name],
		graph.Attrs{}, x)
}

// rnn unrolls h = f(W·x + R·h + biases).
func (c *call) rnn() error {
	rec, err := c.recurrence(1, nil)
	if err != nil {
		return err
	}
	return c.walk(rec, 1, func(d int, f []string) func(below, h graph.TensorID) graph.TensorID {
		weights := c.recurrent(rec, d, 0, 1, 1)
		return func(below, h graph.TensorID) graph.TensorID {
			return c.activation(f[0], c.sumOf(below, c.linear(h, weights)))
		}
	}, "Tanh")
}

// gru unrolls a GRU with gates update z, reset r and the new h: h = z·h + (1-z)·g(W·x + r·(R·h + bias) + bias), or with
// linear_before_reset 0, R·(r·h) + bias instead of the product.
func (c *call) gru() error {
	rec, err := c.recurrence(3, nil)
	if err != nil {
		return err
	}
	before := c.int("linear_before_reset", 0) != 0
	return c.walk(rec, 3, func(d int, f []string) func(below, h graph.TensorID) graph.TensorID {
		var all, two, third []graph.TensorID
		if before {
			all = c.recurrent(rec, d, 0, 3, 3)
		} else {
			two, third = c.recurrent(rec, d, 0, 2, 3), c.recurrent(rec, d, 2, 1, 3)
		}
		n := rec.hidden
		return func(below, h graph.TensorID) graph.TensorID {
			var product, reset graph.TensorID
			if before {
				product = c.linear(h, all)
				reset = c.slice(product, 1, 2*n, n)
				product = c.slice(product, 1, 0, 2*n)
			} else {
				product = c.linear(h, two)
			}
			gates := c.activation(f[0], c.sumOf(c.slice(below, 1, 0, 2*n), product))
			z, r := c.slice(gates, 1, 0, n), c.slice(gates, 1, n, n)
			if before {
				reset = c.product(r, reset)
			} else {
				reset = c.linear(c.product(r, h), third)
			}
			fresh := c.activation(f[1], c.sumOf(c.slice(below, 1, 2*n, n), reset))
			return c.op(graph.Blend, graph.Attrs{}, z, h, fresh)
		}
	}, "Sigmoid", "Tanh")
}
