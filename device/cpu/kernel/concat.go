package kernel

import (
	"tensile/device/cpu/gemm"
	"tensile/graph"
)

// A tensor cut along a dimension is rows: one per combination of the outer indices, each of the extent along the
// dimension times the elements of the inner ones.

// rows returns the number of rows of a tensor cut along a dimension, and the elements of one index along it.
func rows(s graph.Shape, dim int) (count, inner int) {
	return s[:dim].Elements(), s[dim+1:].Elements()
}

// concat: parts -> y, row by row one part after the other.
func concat[T gemm.Float](c *Call[T]) {
	y := c.Out[0]
	count, _ := rows(c.OutShapes[0], c.Attrs.Dim)
	for r := range count {
		for _, part := range c.In {
			y = y[copy(y, item(part, r, count)):]
		}
	}
}

// ranged returns the part of row r of x that a slice shows.
func ranged[T gemm.Float](a *graph.Attrs, x []T, r, count, inner int) []T {
	return item(x, r, count)[a.Begin*inner:][:a.Length*inner]
}

// slice: x -> y.
func slice[T gemm.Float](c *Call[T]) {
	x, y := c.In[0], c.Out[0]
	count, inner := rows(c.InShapes[0], c.Attrs.Dim)
	for r := range count {
		y = y[copy(y, ranged(&c.Attrs, x, r, count, inner)):]
	}
}

// sliceDX: dy -> dx, zero outside of the range.
func sliceDX[T gemm.Float](c *Call[T]) {
	dy, dx := c.In[0], c.Out[0]
	count, inner := rows(c.OutShapes[0], c.Attrs.Dim)
	clear(dx)
	for r := range count {
		dy = dy[copy(ranged(&c.Attrs, dx, r, count, inner), dy):]
	}
}

// sliceAccumulate: dx dy -> dx, with dy added within the range.
func sliceAccumulate[T gemm.Float](c *Call[T]) {
	dx, dy := c.updated(0, 0), c.In[1]
	count, inner := rows(c.InShapes[0], c.Attrs.Dim)
	for r := range count {
		to, from := ranged(&c.Attrs, dx, r, count, inner), item(dy, r, count)
		to = to[:len(from)]
		for i, v := range from {
			to[i] += v
		}
	}
}
