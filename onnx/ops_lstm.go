package onnx

import (
	"fmt"
	"slices"

	"tensile/graph"
)

// Gates of an LSTM stand in the order input, output, forget, cell in ONNX, and input, forget, cell, output in graphs.
var gateOrder = [4]int{0, 2, 3, 1}

// maxSteps bounds the steps of an LSTM, each of which has ops of its own.
const maxSteps = 1 << 12

// direction is an LSTM on its way through time.
type direction struct {
	below, recurrent graph.TensorID // what comes from below [S,N,4H]; weights [4H,H]
	bias             graph.TensorID // of the product with what comes from the step before [4H]
	peep             graph.TensorID // [3,H], input, output and forget; missing: none
	h, c             graph.TensorID // missing: zero
}

// lstm unrolls an LSTM in its default activations: x[S,N,I], or [N,S,I] with layout 1.
func (c *call) lstm() error {
	v, err := c.value(0)
	if err != nil {
		return err
	}
	x, err := c.tensorOf(v)
	if err != nil {
		return err
	}
	if len(v.shape) != 3 {
		return fmt.Errorf("its input has shape %v, want three dimensions", v.shape)
	}
	for _, name := range []string{"activations", "activation_alpha", "activation_beta", "clip"} {
		if a := c.attribute(name); a != nil {
			return fmt.Errorf("its attribute %s is not supported", name)
		}
	}
	if c.int("input_forget", 0) != 0 {
		return fmt.Errorf("input_forget is not supported")
	}
	batchFirst := c.int("layout", 0) != 0
	if batchFirst {
		x = c.permute(x, []int{1, 0, 2})
	}
	s := c.b.Shape(x)
	steps, batch, width := s[0], s[1], s[2]
	if steps > maxSteps {
		return fmt.Errorf("it has %d steps, of which %d are supported", steps, maxSteps)
	}
	r, err := c.weight(2)
	if err != nil {
		return err
	}
	if len(c.b.Shape(r)) != 3 {
		return fmt.Errorf("its weights have shape %v, want [directions,4H,H]", c.b.Shape(r))
	}
	directions, hidden := c.b.Shape(r)[0], c.b.Shape(r)[2]
	reverse := c.text("direction", "forward") == "reverse"
	if c.has(4) {
		lengths, err := c.known(4)
		if err != nil {
			return err
		}
		if n, ok := lengths.uniform(); !ok || int(n) != steps {
			return fmt.Errorf("its sequences have lengths of their own, which is not supported")
		}
	}
	shapes := map[int]graph.Shape{1: {directions, 4 * hidden, width}, 2: {directions, 4 * hidden, hidden},
		3: {directions, 8 * hidden}, 5: {directions, batch, hidden}, 6: {directions, batch, hidden},
		7: {directions, 3 * hidden}}
	if directions > 2 || hidden < 1 {
		return fmt.Errorf("its weights have shape %v", c.b.Shape(r))
	}
	operands := make(map[int]graph.TensorID)
	for k, shape := range shapes {
		operands[k] = missing
		if !c.has(k) {
			continue
		}
		u, _ := c.value(k)
		if fill, ok := uniformOf(u); ok && fill == 0 && (k == 5 || k == 6) {
			continue
		}
		if operands[k], err = c.weight(k); err != nil {
			return err
		}
		if batchFirst && (k == 5 || k == 6) {
			shape = graph.Shape{shape[1], shape[0], shape[2]}
		}
		if got := c.b.Shape(operands[k]); !slices.Equal(got, shape) {
			return fmt.Errorf("its input %d has shape %v, want %v", k, got, shape)
		}
		if batchFirst && (k == 5 || k == 6) {
			operands[k] = c.permute(operands[k], []int{1, 0, 2})
		}
	}
	if operands[1] == missing {
		return fmt.Errorf("its input 1 is missing")
	}
	if (operands[5] == missing) != (operands[6] == missing) { // both, or neither
		for _, k := range []int{5, 6} {
			if operands[k] == missing {
				zeros, err := c.numbers(shapes[k].Elements())
				if err != nil {
					return err
				}
				if operands[k], err = c.constant(shapes[k], zeros); err != nil {
					return err
				}
			}
		}
	}
	var ys, hs, cs []graph.TensorID
	for d := range directions {
		y, h, state, err := c.unroll(x, operands, d, hidden, reverse || d == 1)
		if err != nil {
			return err
		}
		ys, hs, cs = append(ys, y), append(hs, h), append(cs, state)
	}
	y := c.as(c.concat(1, ys...), steps, directions, batch, hidden)
	last := [2]graph.TensorID{c.concat(0, hs...), c.concat(0, cs...)}
	if batchFirst {
		y = c.permute(y, []int{2, 0, 1, 3})
		for k := range last {
			last[k] = c.permute(last[k], []int{1, 0, 2})
		}
	}
	c.give(0, y, c.b.Shape(y))
	c.give(1, last[0], c.b.Shape(last[0]))
	c.give(2, last[1], c.b.Shape(last[1]))
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
	dir.recurrent = c.as(c.gates(in[2], d, 0, hidden), 4*hidden, hidden)
	operands := []graph.TensorID{c.as(x, steps*batch, width), c.as(c.gates(in[1], d, 0, hidden), 4*hidden, width)}
	if in[3] != missing {
		operands = append(operands, c.as(c.gates(in[3], d, 0, hidden), 4*hidden))
		dir.bias = c.as(c.gates(in[3], d, 4, hidden), 4*hidden)
	}
	dir.below = c.as(c.op(graph.Linear, graph.Attrs{}, operands...), steps, batch, 4*hidden)
	if in[5] != missing {
		dir.h = c.as(c.slice(in[5], 0, d, 1), batch, hidden)
		dir.c = c.as(c.slice(in[6], 0, d, 1), batch, hidden)
	}
	if in[7] != missing {
		dir.peep = c.as(c.slice(in[7], 0, d, 1), 3, hidden)
		if dir.c == missing {
			zeros, err := c.numbers(batch * hidden)
			if err != nil {
				return y, h, state, err
			}
			zero, err := c.constant(graph.Shape{batch, hidden}, zeros)
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
		c.step(&dir, c.as(c.slice(dir.below, 0, i, 1), batch, 4*hidden))
		all[i] = c.as(dir.h, 1, 1, batch, hidden)
	}
	return c.concat(0, all...), c.as(dir.h, 1, batch, hidden), c.as(dir.c, 1, batch, hidden), nil
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
			p := c.as(c.slice(d.peep, 0, peep, 1), s[1])
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
