package kernels

import "tensile/graph"

var losses = map[graph.Kind]entry{
	graph.SoftmaxXent:   {launches: softmaxXent, scratch: softmaxXentScratch},
	graph.SoftmaxXentDX: {launches: softmaxXentDX, scratch: softmaxXentDXScratch},
	graph.MeanSquare:    {launches: pairLoss("square_chunks"), scratch: pairLossScratch},
	graph.MeanSquareDX:  {launches: alike("mean_square_dx")},
	graph.SigmoidXent:   {launches: pairLoss("xent_chunks"), scratch: pairLossScratch},
	graph.SigmoidXentDX: {launches: alike("sigmoid_xent_dx")},
}

// softmaxXentScratch holds a loss per row.
func softmaxXentScratch(_ graph.Attrs, in, _ []graph.Shape) graph.Bytes { return doubles(in[0][0]) }

func softmaxXent(c *Call) []Launch {
	rows, classes := c.InShapes[0][0], c.InShapes[0][1]
	launches := []Launch{
		eachRow("softmax_xent", rows, classes, c.In[0], c.In[1], c.Scratch, c.Out[1], rows, classes),
	}
	if c.Out[0] == 0 {
		return launches
	}
	return append(launches, launch("xent_mean", 1, threadsFor(rows), c.Scratch, c.In[1], c.Out[0], rows))
}

// softmaxXentDXScratch holds the number of labels that count.
func softmaxXentDXScratch(graph.Attrs, []graph.Shape, []graph.Shape) graph.Bytes { return doubles(1) }

func softmaxXentDX(c *Call) []Launch {
	rows, classes, n := c.InShapes[0][0], c.InShapes[0][1], c.InShapes[0].Elements()
	return []Launch{
		launch("count_labels", 1, threadsFor(rows), c.In[1], c.Scratch, rows),
		launchEach("softmax_xent_dx", n, c.In[0], c.In[1], c.Scratch, c.Out[0], n, classes),
	}
}

func pairLossScratch(_ graph.Attrs, in, _ []graph.Shape) graph.Bytes {
	return doubles(chunksOf(in[0].Elements()))
}

// pairLoss is the mean of a sum that a kernel makes by chunks.
func pairLoss(kernel string) func(c *Call) []Launch {
	return func(c *Call) []Launch {
		n := c.InShapes[0].Elements()
		return []Launch{
			launch(kernel, chunksOf(n), threadsForChunk(n), c.In[0], c.In[1], c.Scratch, n),
			sumChunks(c.Scratch, c.Out[0], 1, chunksOf(n), float64(n)),
		}
	}
}
