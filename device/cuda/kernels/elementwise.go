package kernels

import "tensile/graph"

var elementwise = map[graph.Kind]entry{
	graph.ReLU:    {launches: alike("relu")},
	graph.ReLUDX:  {launches: func(c *Call) []Launch { return one("relu_dx", c, c.In[1], c.In[2], c.Out[0]) }},
	graph.ReLUYDX: {launches: alike("relu_dx")},
}

// alike is the launch of a kernel that reads an element of every input to make one of every output.
func alike(kernel string) func(c *Call) []Launch {
	return func(c *Call) []Launch {
		var args []any
		for _, a := range c.In {
			args = append(args, a)
		}
		for _, a := range c.Out {
			args = append(args, a)
		}
		return one(kernel, c, args...)
	}
}

// one is one launch of a kernel that treats the elements of the first input alike.
func one(kernel string, c *Call, args ...any) []Launch {
	n := c.InShapes[0].Elements()
	return []Launch{each(kernel, n, append(args, n)...)}
}
