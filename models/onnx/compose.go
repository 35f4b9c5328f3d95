package onnx

import (
	"fmt"
	"slices"

	"tensile/graph"
)

// What ONNX has and graphs have no kind for is composed here.

// op appends an op named after the node's first output and returns its first output.
func (c *call) op(kind graph.Kind, a graph.Attrs, in ...graph.TensorID) graph.TensorID {
	return c.ops(kind, a, in...)[0]
}

func (c *call) ops(kind graph.Kind, a graph.Attrs, in ...graph.TensorID) []graph.TensorID {
	name := c.node.Outputs[0]
	if c.made++; c.made > 1 {
		name = fmt.Sprintf("%s.%d", name, c.made)
	}
	return c.b.Op(name, kind, a, in...)
}

// withShape shows a tensor in another shape.
func (c *call) withShape(t graph.TensorID, shape ...int) graph.TensorID {
	s := full(shape)
	if slices.Equal(c.b.Shape(t), s) {
		return t
	}
	return c.b.View(c.b.Peek().Tensors[t].Name, t, 0, s)
}

// affine is t*factor + shift.
func (c *call) affine(t graph.TensorID, factor, shift float64) graph.TensorID {
	return c.op(graph.Affine, graph.Attrs{Factor: factor, Shift: shift}, t)
}

func (c *call) power(t graph.TensorID, exponent float64) graph.TensorID {
	return c.op(graph.Power, graph.Attrs{Exponent: exponent}, t)
}

// expand broadcasts a tensor to a shape.
func (c *call) expand(t graph.TensorID, to graph.Shape) graph.TensorID {
	from := slices.Clone(c.b.Shape(t))
	for len(from) < len(to) {
		from = append(graph.Shape{1}, from...)
	}
	for d := len(to) - 1; d >= 0; d-- {
		if from[d] == to[d] {
			continue
		}
		first := d // of neighbouring dimensions that are repeated together
		for first > 0 && from[first-1] == 1 {
			first--
		}
		n := to[first : d+1].Elements()
		if n > 1 {
			t = c.op(graph.Expand, graph.Attrs{Extent: [2]int{n}},
				c.withShape(t, from[:first].Elements(), from[d+1:].Elements()))
		}
		copy(from[first:d+1], to[first:d+1])
		d = first
	}
	return c.withShape(t, to...)
}

// spread is expand of what may not fit the shape.
func (c *call) spread(t graph.TensorID, to graph.Shape) (graph.TensorID, error) {
	s, err := broadcast(c.b.Shape(t), full(to))
	if err == nil && !slices.Equal(s, full(to)) {
		err = fmt.Errorf("shape %v does not broadcast to %v", c.b.Shape(t), to)
	}
	if err != nil {
		return missing, err
	}
	return c.expand(t, full(to)), nil
}

// sum adds up over dimensions, which stay with an extent of 1.
func (c *call) sum(t graph.TensorID, shape graph.Shape, axes []bool) (graph.TensorID, graph.Shape) {
	return c.reduced(t, shape, axes, func(t graph.TensorID, outer, n, inner int) graph.TensorID {
		return c.op(graph.SumOver, graph.Attrs{}, c.withShape(t, outer, n, inner))
	})
}

// reduced makes one element of all along some dimensions, which stay with an extent of 1. of does so with the middle
// dimension of three.
func (c *call) reduced(t graph.TensorID, shape graph.Shape, axes []bool,
	of func(t graph.TensorID, outer, n, inner int) graph.TensorID) (graph.TensorID, graph.Shape) {
	shape = slices.Clone(shape)
	for d := len(shape) - 1; d >= 0; d-- {
		if !axes[d] {
			continue
		}
		first := d
		for first > 0 && axes[first-1] {
			first--
		}
		n := shape[first : d+1].Elements()
		if n > 1 {
			t = of(t, shape[:first].Elements(), n, shape[d+1:].Elements())
		}
		for k := first; k <= d; k++ {
			shape[k] = 1
		}
		d = first
	}
	return c.withShape(t, shape...), shape
}

// mapped multiplies all lines along a dimension by a known matrix, of as many rows as the dimension has elements and
// columns as it gets, row by row.
func (c *call) mapped(t graph.TensorID, axis, columns int, matrix []float64) (graph.TensorID, error) {
	s := slices.Clone(c.b.Shape(t))
	n := s[axis]
	m, err := c.constant(graph.Shape{1, n, columns}, matrix)
	if err != nil {
		return missing, err
	}
	outer, inner := s[:axis].Elements(), s[axis+1:].Elements()
	t = c.withShape(c.permute(c.withShape(t, outer, n, inner), []int{0, 2, 1}), 1, outer*inner, n)
	t = c.withShape(c.op(graph.MatMul, graph.Attrs{}, t, m), outer, inner, columns)
	s[axis] = columns
	return c.withShape(c.permute(t, []int{0, 2, 1}), s...), nil
}

// permute orders the dimensions anew. Each op exchanges two runs of neighbouring dimensions.
func (c *call) permute(t graph.TensorID, perm []int) graph.TensorID {
	shape := full(c.b.Shape(t))
	result := graph.Shape{}
	var now, want []int // dimensions of more than one element
	for d := range perm {
		if shape[d] > 1 {
			now = append(now, d)
		}
		result = append(result, shape[perm[d]])
		if shape[perm[d]] > 1 {
			want = append(want, perm[d])
		}
	}
	extent := func(dims []int) int {
		n := 1
		for _, d := range dims {
			n *= shape[d]
		}
		return n
	}
	for i := range want {
		j := slices.Index(now, want[i])
		if j == i {
			continue
		}
		run := 1
		for j+run < len(now) && i+run < len(want) && now[j+run] == want[i+run] {
			run++
		}
		t = c.op(graph.Transpose, graph.Attrs{}, c.withShape(t, extent(now[:i]), extent(now[i:j]), extent(now[j:j+run]),
			extent(now[j+run:])))
		now = slices.Concat(now[:i], now[j:j+run], now[i:j], now[j+run:])
	}
	return c.withShape(t, result...)
}

// slice is a range of a dimension.
func (c *call) slice(t graph.TensorID, dim, begin, length int) graph.TensorID {
	if c.b.Err() != nil || begin == 0 && length == c.b.Shape(t)[dim] {
		return t // after an error shapes mean nothing
	}
	return c.op(graph.Slice, graph.Attrs{Dim: dim, Begin: begin, Length: length}, t)
}

// strided takes each step-th element of a dimension, count of them.
func (c *call) strided(t graph.TensorID, dim, begin, count, step int) graph.TensorID {
	if step == 1 || c.b.Err() != nil {
		return c.slice(t, dim, begin, count)
	}
	s := slices.Clone(c.b.Shape(t))
	length := min(count*step, s[dim]-begin)
	t = c.slice(t, dim, begin, length)
	s[dim] = length
	if length < count*step { // the last one has nothing behind it
		t = c.op(graph.SliceDX, graph.Attrs{Dim: dim, Length: length, Extent: [2]int{count * step}}, t)
	}
	split := slices.Concat(s[:dim], graph.Shape{count, step}, s[dim+1:])
	t = c.slice(c.withShape(t, split...), dim+1, 0, 1)
	s[dim] = count
	return c.withShape(t, s...)
}

// concat joins along a dimension.
func (c *call) concat(dim int, parts ...graph.TensorID) graph.TensorID {
	if len(parts) == 1 {
		return parts[0]
	}
	return c.op(graph.Concat, graph.Attrs{Dim: dim}, parts...)
}

// constant keeps numbers of a shape that the model does not name.
func (c *call) constant(shape graph.Shape, values []float64) (graph.TensorID, error) {
	c.made++
	v := &value{name: fmt.Sprintf("%s.constant%d", c.node.Outputs[0], c.made), shape: shape, tensor: missing,
		known: &constant{shape: shape, floats: values}}
	return c.persistent(v, graph.State)
}

// add is a + b, broadcast. What is added to each row alike is a bias.
func (c *call) add(a, b graph.TensorID, to graph.Shape) graph.TensorID {
	sa, sb := c.b.Shape(a), c.b.Shape(b)
	if sb.Elements() > sa.Elements() {
		a, b, sa, sb = b, a, sb, sa
	}
	if width, ok := tail(sb, to); ok && sa.Elements() == to.Elements() && width < to.Elements() {
		y := c.op(graph.Bias, graph.Attrs{}, c.withShape(a, to.Elements()/width, width), c.withShape(b, width))
		return c.withShape(y, to...)
	}
	return c.op(graph.Add, graph.Attrs{}, c.expand(a, to), c.expand(b, to))
}

// tail reports whether s is the last dimensions of to, and their elements.
func tail(s, to graph.Shape) (int, bool) {
	for len(s) > 0 && s[0] == 1 {
		s = s[1:]
	}
	return s.Elements(), len(s) <= len(to) && slices.Equal(s, to[len(to)-len(s):])
}

func (c *call) mul(a, b graph.TensorID, to graph.Shape) graph.TensorID {
	return c.op(graph.Mul, graph.Attrs{}, c.expand(a, to), c.expand(b, to))
}
