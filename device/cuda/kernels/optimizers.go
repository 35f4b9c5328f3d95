package kernels

import "tensile/graph"

var optimizers = map[graph.Kind]entry{
	graph.SGD:      {launches: sgd},
	graph.Momentum: {launches: momentum},
	graph.Adam:     {launches: adam},
}

func sgd(c *Call) []Launch {
	n := c.InShapes[0].Elements()
	return []Launch{launchEach("sgd", n, c.In[0], c.In[1], n, c.Attrs.LearningRate)}
}

func momentum(c *Call) []Launch {
	n, a := c.InShapes[0].Elements(), c.Attrs
	return []Launch{launchEach("sgd_momentum", n, c.In[0], c.In[1], c.In[2], n, a.LearningRate, a.Momentum)}
}

func adam(c *Call) []Launch {
	n, a := c.InShapes[0].Elements(), c.Attrs
	return []Launch{launchEach("adam", n, c.In[0], c.In[1], c.In[2], c.In[3], n, c.Iteration, a.LearningRate, a.Beta1,
		a.Beta2, a.Epsilon)}
}
