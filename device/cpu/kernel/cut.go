package kernel

import (
	"slices"

	"tensile/device/cpu/gemm"
	"tensile/graph"
)

// Most calls fall into parts that know nothing of one another, which a crew computes at once: some elements, or some
// rows along the first dimension. A part is a call of the same kernel with parts of the operands, so that the bits do
// not depend on how many there are. Kernels whose sums go over rows divide their work themselves, along what is not
// added up.

// leastElements is how many a part has at least: some ten microseconds. Tests lower it.
var leastElements = 1 << 15

// cut says how a call falls into parts.
type cut struct {
	n     int   // indices that parts have ranges of
	each  int   // elements' work an index is
	merge int   // leading dimensions of an operand that are one in the parts; 0: all of them
	whole []int // inputs that every part has whole
}

// elements cuts a call whose operands have the same elements.
func elements[T gemm.Float](c *Call[T]) cut { return cut{n: len(c.In[0]), each: 1} }

// rowsBut cuts a call along the first dimension of all operands but some inputs.
func rowsBut[T gemm.Float](whole ...int) func(c *Call[T]) cut {
	return func(c *Call[T]) cut {
		n := c.OutShapes[0][0]
		return cut{n: n, each: c.largest() / n, merge: 1, whole: whole}
	}
}

// allPlanes cuts a call along the first two dimensions.
func allPlanes[T gemm.Float](c *Call[T]) cut {
	n := c.OutShapes[0][0] * c.OutShapes[0][1]
	return cut{n: n, each: c.largest() / n, merge: 2}
}

// products cuts a batch of matrix products.
func products[T gemm.Float](c *Call[T]) cut {
	n := c.OutShapes[0][0]
	return cut{n: n, each: len(c.Out[0]) / n * (len(c.In[0]) / n / c.OutShapes[0][1]) / 16, merge: 1}
}

// outerRows cuts a call along the first dimension, unless that is the one along which tensors are put together.
func outerRows[T gemm.Float](c *Call[T]) cut {
	if c.Attrs.Dim == 0 {
		return cut{n: 1}
	}
	return rowsBut[T]()(c)
}

// largest is how many elements the largest operand has.
func (c *Call[T]) largest() (n int) {
	for _, operands := range [][][]T{c.In, c.Out} {
		for _, o := range operands {
			n = max(n, len(o))
		}
	}
	return n
}

// divide computes the parts of a call.
func divide[T gemm.Float](c *Call[T], by cut, run func(c *Call[T])) {
	c.split(by.n, by.each, func(from, to int) {
		if from == 0 && to == by.n {
			run(c)
			return
		}
		part := *c
		part.first = from
		part.In, part.InShapes = partsOf(by, c.In, c.InShapes, by.whole, from, to)
		part.Out, part.OutShapes = partsOf(by, c.Out, c.OutShapes, nil, from, to)
		run(&part)
	})
}

// split calls do with the parts of [0, n), each index being so many elements' work.
func (c *Call[T]) split(n, each int, do func(from, to int)) {
	c.GEMM.Crew().Split(n, leastElements/max(1, each), do)
}

// eachOf calls do for every index of [0, n), each being so many elements' work.
func (c *Call[T]) eachOf(n, each int, do func(i int)) {
	c.split(n, each, func(from, to int) {
		for i := from; i < to; i++ {
			do(i)
		}
	})
}

// partsOf returns what operands have of indices from to to.
func partsOf[T gemm.Float](by cut, operands [][]T, shapes []graph.Shape, whole []int, from, to int) ([][]T,
	[]graph.Shape) {
	parts, partShapes := make([][]T, len(operands)), make([]graph.Shape, len(operands))
	for i, o := range operands {
		parts[i], partShapes[i] = o, shapes[i]
		if slices.Contains(whole, i) {
			continue
		}
		if size := len(o) / by.n; o != nil {
			parts[i] = o[from*size : to*size]
		}
		switch by.merge {
		case 0:
			partShapes[i] = graph.Shape{to - from}
		case 1:
			partShapes[i] = slices.Concat(graph.Shape{to - from}, shapes[i][1:])
		default:
			partShapes[i] = slices.Concat(graph.Shape{to - from, 1}, shapes[i][2:])
		}
	}
	return parts, partShapes
}
