package kernels

import "tensile/graph"

var attention = map[graph.Kind]entry{
	graph.Softmax:            {launches: softmax},
	graph.SoftmaxDX:          {launches: softmaxDX},
	graph.AdditiveScores:     {launches: additiveScores},
	graph.AdditiveScoresGrad: {launches: additiveScoresGrad, scratch: additiveScoresGradScratch},
}

func softmax(c *Call) []Launch {
	s, causal := c.InShapes[0], 0
	if c.Attrs.Causal {
		causal = 1
	}
	rows := s[0] * s[1]
	return []Launch{eachRow("softmax", rows, s[2], c.In[0], c.Out[0], rows, s[2], c.Attrs.Factor, causal, s[1])}
}

func softmaxDX(c *Call) []Launch {
	s := c.InShapes[0]
	rows := s[0] * s[1]
	return []Launch{eachRow("softmax_dx", rows, s[2], c.In[0], c.In[1], c.Out[0], rows, s[2], c.Attrs.Factor)}
}

func additiveScores(c *Call) []Launch {
	q, k, n := c.InShapes[0], c.InShapes[1], c.OutShapes[0].Elements()
	return []Launch{launchEach("additive_scores", n, operands(c, n, q[1], k[1], q[2])...)}
}

// additiveScoresGradScratch holds each query's share of dv.
func additiveScoresGradScratch(_ graph.Attrs, in, _ []graph.Shape) graph.Bytes {
	return doubles(in[0].Elements())
}

func additiveScoresGrad(c *Call) []Launch {
	q, k := c.InShapes[0], c.InShapes[1]
	var launches []Launch
	in := []any{c.In[0], c.In[1], c.In[2], c.In[3]}
	add := func(kernel string, n int, out ...any) {
		args := append(append(in[:4:4], out...), n, q[1], k[1], q[2])
		launches = append(launches, launchEach(kernel, n, args...))
	}
	var shares uint64
	if c.Out[2] != 0 {
		shares = c.Scratch
	}
	if c.Out[0] != 0 || shares != 0 {
		add("additive_scores_dq", q.Elements(), c.Out[0], shares)
	}
	if c.Out[1] != 0 {
		add("additive_scores_dk", k.Elements(), c.Out[1])
	}
	if shares != 0 {
		launches = append(launches, sumParts(shares, c.Out[2], q[2], q[0]*q[1]))
	}
	return launches
}
