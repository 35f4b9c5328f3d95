package devicetest

import "tensile/graph"

// sequence appends an op of every kind that reads sequences, with its gradient, to the first weights x[3,16] of the
// zoo. The gradients need not be right: what is tested is that each op finds its operands.
func (z *zoo) sequence(x graph.TensorID) {
	none, scaled := graph.Attrs{}, graph.Attrs{Factor: 0.5}
	row, batch := z.parameter("row", 16), graph.Shape{1, 3, 16}
	ids := z.Input("ids", graph.Anything, graph.Int64, graph.Shape{3})
	y := z.addOp("embedding", graph.Embedding, none, x, ids)
	y = z.addOp("bias", graph.Bias, none, y, row)
	norm := z.Op("layer norm", graph.LayerNorm, graph.Attrs{Epsilon: 1e-5}, y, row, row)
	y = z.Op("layer norm grad", graph.LayerNormGrad, none, y, norm[1], norm[2], row, norm[0])[0]
	for _, kinds := range [][2]graph.Kind{{graph.GELU, graph.GELUDX}, {graph.Sigmoid, graph.SigmoidDX},
		{graph.Tanh, graph.TanhDX}} {
		y = z.addOp(string(kinds[1]), kinds[1], none, z.addOp(string(kinds[0]), kinds[0], none, y), y)
	}
	y = z.arithmetic(y)
	y = z.addOp("blend", graph.Blend, none, y, x, norm[0])
	y = z.Op("blend grad", graph.BlendGrad, none, y, x, norm[0], y)[2]
	square := z.addOp("square", graph.MatMul, graph.Attrs{TransposeB: true}, z.View("a", y, 0, batch),
		z.View("b", x, 0, batch))
	shares := z.addOp("shares", graph.Softmax, scaled, square)
	square = z.addOp("dshares", graph.SoftmaxDX, scaled, shares, square)
	y = z.addOp("turned", graph.Transpose, none, z.View("wide", y, 0, graph.Shape{1, 3, 16, 1}))
	y = z.View("rows", y, 0, batch)
	e := z.addOp("scores", graph.AdditiveScores, none, y, y, row)
	y = z.Op("dscores", graph.AdditiveScoresGrad, none, y, y, row, z.addOp("sum of scores", graph.Add, none, e,
		square))[0]
	gates := z.View("gates", y, 0, graph.Shape{3, 16})
	step := z.Op("lstm", graph.LSTM, none, gates)
	next := z.Op("lstm2", graph.LSTM, none, gates, gates, step[1])
	d := z.Op("dlstm2", graph.LSTMGrad, none, gates, gates, step[1], next[0], next[1])
	gates = z.Op("dlstm", graph.LSTMGrad, none, gates, d[1])[0]
	for _, kinds := range [][2]graph.Kind{{graph.MeanSquare, graph.MeanSquareDX},
		{graph.SigmoidXent, graph.SigmoidXentDX}} {
		z.Output(z.addOp(string(kinds[0]), kinds[0], none, gates, x))
		gates = z.addOp(string(kinds[1]), kinds[1], none, gates, x)
	}
	z.Output(z.addOp("dtable", graph.EmbeddingDW, graph.Attrs{Extent: [2]int{3}}, ids, gates))
}
