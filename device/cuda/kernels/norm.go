package kernels

import "tensile/graph"

var norms = map[graph.Kind]entry{
	graph.BatchNormStats:  {launches: batchNormStats, scratch: batchNormStatsScratch},
	graph.BatchNorm:       {launches: batchNorm},
	graph.BatchNormUpdate: {launches: batchNormUpdate},
	graph.BatchNormGrad:   {launches: batchNormGrad, scratch: batchNormGradScratch},
	graph.LayerNorm:       {launches: layerNorm},
	graph.LayerNormGrad:   {launches: layerNormGrad, scratch: layerNormGradScratch},
	graph.LRN:             {launches: lrn("lrn")},
	graph.LRNDX:           {launches: lrn("lrn_dx")},
}

// pairs are the bytes of two sums per channel and chunk.
func (ch channels) pairs() graph.Bytes { return doubles(2 * ch.c * chunksOf(ch.count())) }

func batchNormStatsScratch(_ graph.Attrs, in, _ []graph.Shape) graph.Bytes {
	return channelsOf(in[0]).pairs()
}

func batchNormStats(c *Call) []Launch {
	ch := channelsOf(c.InShapes[0])
	count, chunks := ch.count(), chunksOf(ch.count())
	return []Launch{
		launch("stats_chunks", chunks*ch.c, threadsForChunk(count), c.In[0], c.Scratch, count, ch.c, ch.size, chunks),
		launch("stats", ch.c, threadsFor(chunks), c.Scratch, c.Out[0], c.Out[1], count, chunks),
	}
}

func batchNorm(c *Call) []Launch {
	n, ch := c.InShapes[0].Elements(), channelsOf(c.InShapes[0])
	return []Launch{launchEach("batch_norm", n, operands(c, n, ch.c, ch.size, c.Attrs.Epsilon)...)}
}

func batchNormUpdate(c *Call) []Launch {
	channels, n := c.InShapes[0].Elements(), float64(c.Attrs.Length)
	return []Launch{launchEach("batch_norm_update", channels, c.In[0], c.In[1], c.In[2], c.In[3], channels,
		c.Attrs.Momentum,
		n/(n-1))}
}

// batchNormGradScratch holds sums, and three floats per channel.
func batchNormGradScratch(_ graph.Attrs, in, _ []graph.Shape) graph.Bytes {
	ch := channelsOf(in[0])
	return ch.pairs() + doubles((3*ch.c+1)/2)
}

func batchNormGrad(c *Call) []Launch {
	x, mean, variance, gamma, dy := c.In[0], c.In[1], c.In[2], c.In[3], c.In[4]
	n, ch := c.InShapes[0].Elements(), channelsOf(c.InShapes[0])
	count, chunks := ch.count(), chunksOf(ch.count())
	factors := c.Scratch + uint64(ch.pairs())
	launches := []Launch{
		launch("grad_chunks", chunks*ch.c, threadsForChunk(count), x, mean, dy, c.Scratch, count, ch.c, ch.size,
			chunks),
		launch("grads", ch.c, threadsFor(chunks), c.Scratch, variance, gamma, c.Out[1], c.Out[2], factors, count,
			chunks, c.Attrs.Epsilon),
	}
	if c.Out[0] == 0 {
		return launches
	}
	return append(launches, launchEach("batch_norm_dx", n, x, mean, dy, c.Out[0], factors, n, ch.c, ch.size))
}

// maxRows bounds the grids whose blocks take several rows each.
const maxRows = 1 << 16

// eachRow is a launch of a kernel that gives each row to a block.
func eachRow(kernel string, rows, width int, args ...any) Launch {
	return launch(kernel, min(rows, maxRows), threadsFor(width), args...)
}

func layerNorm(c *Call) []Launch {
	rows, width := c.InShapes[0][0], c.InShapes[0][1]
	return []Launch{eachRow("layer_norm", rows, width, operands(c, rows, width, c.Attrs.Epsilon)...)}
}

func layerNormGradScratch(_ graph.Attrs, in, _ []graph.Shape) graph.Bytes {
	return doubles(2 * partsOf(in[0][0]) * in[0][1])
}

// layerNormGrad makes dx last: it may be in dy's place.
func layerNormGrad(c *Call) []Launch {
	x, mean, scale, gamma, dy := c.In[0], c.In[1], c.In[2], c.In[3], c.In[4]
	rows, width := c.InShapes[0][0], c.InShapes[0][1]
	parts := partsOf(rows)
	n := parts * width
	products, sums := c.Scratch, c.Scratch+uint64(doubles(n))
	var launches []Launch
	if c.Out[1] != 0 || c.Out[2] != 0 {
		launches = append(launches, launchEach("layer_norm_columns", n, x, mean, scale, dy, products, sums, n, rows,
			width,
			partRows))
	}
	if c.Out[1] != 0 {
		launches = append(launches, sumParts(products, c.Out[1], width, parts))
	}
	if c.Out[2] != 0 {
		launches = append(launches, sumParts(sums, c.Out[2], width, parts))
	}
	if c.Out[0] != 0 {
		launches = append(launches, eachRow("layer_norm_dx", rows, width, x, mean, scale, gamma, dy, c.Out[0], rows,
			width))
	}
	return launches
}

func lrn(kernel string) func(c *Call) []Launch {
	return func(c *Call) []Launch {
		n, ch, a := c.InShapes[0].Elements(), channelsOf(c.InShapes[0]), c.Attrs
		return []Launch{launchEach(kernel, n, operands(c, n, ch.c, ch.size, a.Length/2, a.Factor, a.Exponent,
			a.Epsilon)...)}
	}
}
