package kernels

import "tensile/graph"

var embeddings = map[graph.Kind]entry{
	graph.Embedding:   {launches: embedding},
	graph.EmbeddingDW: {launches: embeddingDW, scratch: embeddingDWScratch},
	graph.Bias:        {launches: bias},
}

func embedding(c *Call) []Launch {
	table, n := c.InShapes[0], c.OutShapes[0].Elements()
	return []Launch{launchEach("embedding", n, c.In[0], c.In[1], c.Out[0], n, table[1], table[0])}
}

// embeddingDWScratch holds a link per id.
func embeddingDWScratch(_ graph.Attrs, in, _ []graph.Shape) graph.Bytes {
	return 8 * graph.Bytes(in[0].Elements())
}

func embeddingDW(c *Call) []Launch {
	ids, dy, dtable := c.InShapes[0][0], c.InShapes[1], c.OutShapes[0]
	return []Launch{
		launchEach("zero", dtable.Elements(), c.Out[0], dtable.Elements()),
		launchEach("chain", ids, c.In[0], c.Scratch, ids),
		launchEach("embedding_dw", dy.Elements(), c.In[0], c.Scratch, c.In[1], c.Out[0], dy.Elements(), dy[1],
			c.Attrs.Begin,
			dtable[0]),
	}
}

func bias(c *Call) []Launch {
	x := c.InShapes[0]
	return []Launch{launchEach("bias", x.Elements(), c.In[0], c.In[1], c.Out[0], x.Elements(), x[1])}
}
