package kernels

import "tensile/graph"

var elementwise = map[graph.Kind]entry{
	graph.ReLU:       {launches: alike("relu")},
	graph.ReLUDX:     {launches: reluDX},
	graph.ReLUYDX:    {launches: alike("relu_dx")},
	graph.Add:        {launches: alike("add")},
	graph.Mul:        {launches: alike("mul")},
	graph.Accumulate: {launches: alike("add")},
	graph.Scale:      {launches: scale},
	graph.Affine:     {launches: affine},
	graph.Power:      {launches: power},
	graph.Exp:        {launches: alike("exponential")},
	graph.Log:        {launches: alike("logarithm")},
	graph.Erf:        {launches: alike("error_function")},
	graph.GELU:       {launches: alike("gelu")},
	graph.GELUDX:     {launches: alike("gelu_dx")},
	graph.Sigmoid:    {launches: alike("sigmoid")},
	graph.SigmoidDX:  {launches: alike("sigmoid_dx")},
	graph.Tanh:       {launches: alike("hyperbolic_tangent")},
	graph.TanhDX:     {launches: alike("tanh_dx")},
	graph.Blend:      {launches: alike("blend")},
	graph.BlendGrad:  {launches: alike("blend_grad")},
	graph.Dropout:    {launches: dropout},
	graph.DropoutDX:  {launches: dropout},
}

// reluDX does not read x.
func reluDX(c *Call) []Launch {
	n := c.OutShapes[0].Elements()
	return []Launch{launchEach("relu_dx", n, c.In[1], c.In[2], c.Out[0], n)}
}

func scale(c *Call) []Launch {
	n := c.OutShapes[0].Elements()
	return []Launch{launchEach("scale", n, c.Out[0], n, c.Attrs.Factor)}
}

func affine(c *Call) []Launch {
	n := c.OutShapes[0].Elements()
	return []Launch{launchEach("affine", n, c.In[0], c.Out[0], n, c.Attrs.Factor, c.Attrs.Shift)}
}

func power(c *Call) []Launch {
	n := c.OutShapes[0].Elements()
	return []Launch{launchEach("power", n, c.In[0], c.Out[0], n, c.Attrs.Exponent)}
}

// dropout draws the mask as the CPU's kernel does.
func dropout(c *Call) []Launch {
	n, rate := c.OutShapes[0].Elements(), c.Attrs.Rate
	return []Launch{launchEach("dropout", n, c.In[0], c.Out[0], n, c.Iteration, c.Seed, c.Attrs.Key,
		uint64(rate*(1<<53)),
		1/(1-rate))}
}

// alike is one launch of a kernel that takes all operands, and treats each element alike.
func alike(kernel string) func(c *Call) []Launch {
	return func(c *Call) []Launch {
		n := c.OutShapes[0].Elements()
		return []Launch{launchEach(kernel, n, operands(c, n)...)}
	}
}

// operands are the addresses of the inputs and the outputs, and more arguments.
func operands(c *Call, more ...any) []any {
	var args []any
	for _, addresses := range [2][]uint64{c.In, c.Out} {
		for _, a := range addresses {
			args = append(args, a)
		}
	}
	return append(args, more...)
}
