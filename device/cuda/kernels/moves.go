package kernels

import "tensile/graph"

var moves = map[graph.Kind]entry{
	graph.Concat:          {launches: concat},
	graph.Slice:           {launches: slice},
	graph.SliceDX:         {launches: sliceDX},
	graph.SliceAccumulate: {launches: sliceAccumulate},
	graph.Pad:             {launches: pad},
	graph.Transpose:       {launches: transpose},
	graph.Expand:          {launches: expand},
	graph.SumOver:         {launches: sumOver},
}

func expand(c *Call) []Launch {
	y := c.OutShapes[0]
	n := y.Elements()
	return []Launch{launchEach("expand", n, c.In[0], c.Out[0], n, y[1], y[2])}
}

func sumOver(c *Call) []Launch {
	x, n := c.InShapes[0], c.OutShapes[0].Elements()
	return []Launch{launchEach("sum_over", n, c.In[0], c.Out[0], n, x[1], x[2])}
}

// A tensor cut along a dimension is rows: one per combination of the outer indices, each of the extent along the
// dimension times the elements of the inner ones.

// width is the number of elements of such a row.
func width(s graph.Shape, dim int) int { return s[dim:].Elements() }

// concat is a launch per part.
func concat(c *Call) []Launch {
	dim, at := c.Attrs.Dim, 0
	var launches []Launch
	for i, part := range c.InShapes {
		n, w := part.Elements(), width(part, dim)
		launches = append(launches, launchEach("copy_rows", n, c.In[i], c.Out[0], n, w, 0, w, at, width(c.OutShapes[0],
			dim)))
		at += w
	}
	return launches
}

// ranged is the width of the rows of a slice, where it begins in the rows that it is of, and their width.
func ranged(c *Call, of graph.Shape) (part, begin, stride int) {
	dim := c.Attrs.Dim
	inner := of[dim+1:].Elements()
	return c.Attrs.Length * inner, c.Attrs.Begin * inner, width(of, dim)
}

func slice(c *Call) []Launch {
	n := c.OutShapes[0].Elements()
	part, begin, stride := ranged(c, c.InShapes[0])
	return []Launch{launchEach("copy_rows", n, c.In[0], c.Out[0], n, part, begin, stride, 0, part)}
}

func sliceDX(c *Call) []Launch {
	n := c.OutShapes[0].Elements()
	part, begin, stride := ranged(c, c.OutShapes[0])
	return []Launch{launchEach("slice_dx", n, c.In[0], c.Out[0], n, part, begin, stride)}
}

func sliceAccumulate(c *Call) []Launch {
	n := c.InShapes[1].Elements()
	part, begin, stride := ranged(c, c.InShapes[0])
	return []Launch{launchEach("slice_accumulate", n, c.Out[0], c.In[1], n, part, begin, stride)}
}

func pad(c *Call) []Launch {
	x, y := c.InShapes[0], c.OutShapes[0]
	n := y.Elements()
	return []Launch{launchEach("pad", n, c.In[0], c.Out[0], n, x[2], x[3], y[2], y[3], c.Attrs.Pad[0], c.Attrs.Pad[1])}
}

func transpose(c *Call) []Launch {
	x := c.InShapes[0]
	n := x.Elements()
	return []Launch{launchEach("transpose", n, c.In[0], c.Out[0], n, x[1], x[2], x[3])}
}
