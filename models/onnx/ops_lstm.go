package onnx

import (
	"fmt"
	"slices"

	"tensile/graph"
)

// Gates of an LSTM stand in the order input, output, forget, cell in ONNX, and input, forget, cell, output in graphs.
var gateOrder = [4]int{0, 2, 3, 1}

// direction is an LSTM on its way through time.
type direction struct {
	below, recurrent graph.TensorID // what comes from below [S,N,4H]; weights [4H,H]
	bias             graph.TensorID // of the product with what comes from the step before [4H]
	peep             graph.TensorID // [3,H], input, output and forget; missing: none
	h, c             graph.TensorID // missing: zero
}

// lstm unrolls an LSTM in its default activations.
func (c *call) lstm() error {
	rec, err := c.recurrence(4, map[int]int{6: 0, 7: 3})
	if err != nil {
		return err
	}
	if c.int("input_forget", 0) != 0 {
		return fmt.Errorf("input_forget is not supported")
	}
	if (rec.in[5] == missing) != (rec.in[6] == missing) { // both, or neither
		for _, k := range []int{5, 6} {
			if rec.in[k] == missing {
				if rec.in[k], err = c.zeros(graph.Shape{rec.directions, rec.batch, rec.hidden}); err != nil {
					return err
				}
			}
		}
	}
	var ys, hs, cs []graph.TensorID
	for d := range rec.directions {
		f, err := c.functions(d, "Sigmoid", "Tanh", "Tanh")
		if err != nil {
			return err
		}
		if !slices.Equal(f, []string{"Sigmoid", "Tanh", "Tanh"}) {
			return fmt.Errorf("its activations %.80q are not supported", f)
		}
		y, h, state, err := c.unroll(rec.x, rec.in, d, rec.hidden, rec.reverse || d == 1)
		if err != nil {
			return err
		}
		ys, hs, cs = append(ys, y), append(hs, h), append(cs, state)
	}
	c.states(rec, ys, hs, cs)
	return c.b.Err()
}

// gates takes direction d of a tensor [directions, blocks of H...] and orders the four blocks that begin at a place.
func (c *call) gates(t graph.TensorID, d, first, hidden int) graph.TensorID {
	one := c.slice(t, 0, d, 1)
	parts := make([]graph.TensorID, 4)
	for i, gate := range gateOrder {
		parts[i] = c.slice(one, 1, (first+gate)*hidden, hidden)
	}
	return c.concat(1, parts...)
}

// unroll runs one direction. It returns all h[S,1,N,H] and the last h and memory [1,N,H].
func (c *call) unroll(x graph.TensorID, in map[int]graph.TensorID, d, hidden int, backwards bool) (
	y, h, state graph.TensorID, err error) {
	s := c.b.Shape(x)
	steps, batch, width := s[0], s[1], s[2]
	dir := direction{bias: missing, peep: missing, h: missing, c: missing}
	dir.recurrent = c.withShape(c.gates(in[2], d, 0, hidden), 4*hidden, hidden)
	operands := []graph.TensorID{c.withShape(x, steps*batch, width), c.withShape(c.gates(in[1], d, 0, hidden), 4*hidden,
		width)}
	if in[3] != missing {
		operands = append(operands, c.withShape(c.gates(in[3], d, 0, hidden), 4*hidden))
		dir.bias = c.withShape(c.gates(in[3], d, 4, hidden), 4*hidden)
	}
	dir.below = c.withShape(c.op(graph.Linear, graph.Attrs{}, operands...), steps, batch, 4*hidden)
	if in[5] != missing {
		dir.h = c.withShape(c.slice(in[5], 0, d, 1), batch, hidden)
		dir.c = c.withShape(c.slice(in[6], 0, d, 1), batch, hidden)
	}
	if in[7] != missing {
		dir.peep = c.withShape(c.slice(in[7], 0, d, 1), 3, hidden)
		if dir.c == missing {
			zero, err := c.zeros(graph.Shape{batch, hidden})
			if err != nil {
				return y, h, state, err
			}
			dir.h, dir.c = zero, zero
		}
	}
	all := make([]graph.TensorID, steps)
	for i := range steps {
		if backwards {
			i = steps - 1 - i
		}
		c.step(&dir, c.withShape(c.slice(dir.below, 0, i, 1), batch, 4*hidden))
		all[i] = c.withShape(dir.h, 1, 1, batch, hidden)
	}
	return c.concat(0, all...), c.withShape(dir.h, 1, batch, hidden), c.withShape(dir.c, 1, batch, hidden), nil
}

// step is one step of a direction.
func (c *call) step(d *direction, below graph.TensorID) {
	if d.h == missing { // before the first step all is zero: of the product only the bias is left
		if d.bias != missing {
			below = c.op(graph.Bias, graph.Attrs{}, below, d.bias)
		}
		out := c.ops(graph.LSTM, graph.Attrs{}, below)
		d.h, d.c = out[0], out[1]
		return
	}
	operands := []graph.TensorID{d.h, d.recurrent}
	if d.bias != missing {
		operands = append(operands, d.bias)
	}
	r := c.op(graph.Linear, graph.Attrs{}, operands...)
	if d.peep == missing {
		out := c.ops(graph.LSTM, graph.Attrs{}, below, r, d.c)
		d.h, d.c = out[0], out[1]
		return
	}
	sum := c.op(graph.Add, graph.Attrs{}, below, r)
	s := c.b.Shape(d.c)
	gate := func(i, peep int, memory graph.TensorID) graph.TensorID {
		g := c.slice(sum, 1, i*s[1], s[1])
		if peep >= 0 {
			p := c.withShape(c.slice(d.peep, 0, peep, 1), s[1])
			g = c.op(graph.Add, graph.Attrs{}, g, c.mul(memory, p, s))
		}
		return g
	}
	times := func(a, b graph.TensorID) graph.TensorID { return c.op(graph.Mul, graph.Attrs{}, a, b) }
	input := c.op(graph.Sigmoid, graph.Attrs{}, gate(0, 0, d.c))
	forget := c.op(graph.Sigmoid, graph.Attrs{}, gate(1, 2, d.c))
	cell := c.op(graph.Tanh, graph.Attrs{}, gate(2, -1, d.c))
	d.c = c.op(graph.Add, graph.Attrs{}, times(forget, d.c), times(input, cell))
	d.h = times(c.op(graph.Sigmoid, graph.Attrs{}, gate(3, 1, d.c)), c.op(graph.Tanh, graph.Attrs{}, d.c))
}
