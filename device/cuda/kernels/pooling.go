package kernels

import "tensile/graph"

var pooling = map[graph.Kind]entry{
	graph.MaxPool: {launches: func(c *Call) []Launch { return pool("max_pool", c, c.InShapes[0], c.OutShapes[0]) }},
	graph.MaxPoolDX: {launches: func(c *Call) []Launch {
		return pool("max_pool_dx", c, c.OutShapes[0], c.InShapes[1])
	}},
	graph.MaxPoolIndices: {launches: func(c *Call) []Launch {
		return pool("max_pool_indices", c, c.InShapes[0], c.OutShapes[0])
	}},
	graph.MaxPoolIndicesDX: {launches: func(c *Call) []Launch {
		return pool("max_pool_indices_dx", c, c.OutShapes[0], c.InShapes[0])
	}},
	graph.AvgPool: {launches: func(c *Call) []Launch {
		return pool("avg_pool", c, c.InShapes[0], c.OutShapes[0], insideFlag(c))
	}},
	graph.AvgPoolDX: {launches: func(c *Call) []Launch {
		dy := *c // x and y are not read
		dy.In = c.In[2:]
		return pool("avg_pool_dx", &dy, c.OutShapes[0], c.InShapes[1], insideFlag(c))
	}},
	graph.AvgPoolDYDX: {launches: func(c *Call) []Launch {
		return pool("avg_pool_dx", c, c.OutShapes[0], c.InShapes[0], insideFlag(c))
	}},
}

func insideFlag(c *Call) int {
	if c.Attrs.Inside {
		return 1
	}
	return 0
}

// pool is one launch with the geometry between x and y. Each element of the first output is made by a thread.
func pool(kernel string, c *Call, x, y graph.Shape, more ...any) []Launch {
	n, a := c.OutShapes[0].Elements(), c.Attrs
	args := operands(c, n, x[2], x[3], y[2], y[3], a.Kernel[0], a.Kernel[1], a.Stride[0], a.Stride[1], a.Pad[0],
		a.Pad[1])
	return []Launch{launchEach(kernel, n, append(args, more...)...)}
}
