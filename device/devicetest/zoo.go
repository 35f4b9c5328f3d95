package devicetest

import "tensile/graph"

// Zoo is one training step of a small convolutional network with an op of every kind. Its outputs are loss.0, pool2
// and those of sequence.
func Zoo() *graph.Graph {
	z := &zoo{Builder: graph.NewBuilder("zoo")}
	x := z.Input("x", graph.Anything, graph.Float32, graph.Shape{2, 3, 8, 8})
	labels := z.Input("labels", graph.Anything, graph.Float32, graph.Shape{2})
	w, b := z.parameter("w", 4, 3, 3, 3), z.parameter("b", 4)
	gamma, beta := z.parameter("gamma", 4), z.parameter("beta", 4)
	mean, variance := z.state("running mean", 4), z.state("running variance", 4)
	v, c := z.parameter("v", 3, 16), z.parameter("c", 3)
	z.sequence(v)

	conv := graph.Attrs{Kernel: [2]int{3, 3}, Stride: [2]int{1, 1}, Pad: [2]int{1, 1}}
	pool := graph.Attrs{Kernel: [2]int{2, 2}, Stride: [2]int{2, 2}}
	norm := graph.Attrs{Epsilon: 1e-5}
	drop := graph.Attrs{Rate: 0.25, Key: 7}
	none := graph.Attrs{}

	y := z.addOp("conv", graph.Conv2D, conv, x, w, b)
	stats := z.Op("stats", graph.BatchNormStats, none, y)
	n := z.addOp("norm", graph.BatchNorm, norm, y, stats[0], stats[1], gamma, beta)
	z.Op("running", graph.BatchNormUpdate, graph.Attrs{Momentum: 0.1, Length: 2 * 8 * 8}, stats[0], stats[1], mean,
		variance)
	r := z.addOp("relu", graph.ReLU, none, n)
	p1 := z.addOp("pool1", graph.MaxPool, pool, r)
	indexed := z.Op("pool1 again", graph.MaxPoolIndices, pool, r)
	gate := z.addOp("gate", graph.Mul, none, p1, indexed[0])
	sum := z.addOp("sum", graph.Add, graph.Attrs{InPlace: 2}, p1, gate)
	sum = z.blur(z.cut(sum))
	p2 := z.addOp("pool2", graph.AvgPool, pool, sum)
	z.Output(p2)
	d := z.addOp("dropout", graph.Dropout, drop, p2)
	d = z.addOp("relu in place", graph.ReLU, graph.Attrs{InPlace: 1}, d)
	flat := z.View("flat", d, 0, graph.Shape{2, 16})
	logits := z.addOp("logits", graph.Linear, none, flat, v, c)
	loss := z.Op("loss", graph.SoftmaxXent, none, logits, labels)
	z.Output(loss[0])

	z.SetPhase(graph.Backward)
	dlogits := z.addOp("dlogits", graph.SoftmaxXentDX, none, loss[1], labels)
	dv, dc := z.addOp("dv", graph.LinearDW, none, flat, dlogits), z.addOp("dc", graph.BiasDB, none, dlogits)
	dd := z.View("dd", z.addOp("dflat", graph.LinearDX, none, dlogits, v), 0, graph.Shape{2, 4, 2, 2})
	dd = z.addOp("drelu in place", graph.ReLUYDX, graph.Attrs{InPlace: 2}, d, dd)
	dp2 := z.addOp("dp2", graph.DropoutDX, drop, dd)
	onto := pool
	onto.Extent = [2]int{4, 4}
	dsum := z.addOp("half of dsum", graph.AvgPoolDX, pool, sum, p2, dp2)
	dsum = z.addOp("dsum", graph.Add, graph.Attrs{InPlace: 2}, dsum,
		z.addOp("other half of dsum", graph.AvgPoolDYDX, onto, dp2))
	dsum = z.cutGrad(z.blurGrad(sum, dsum))
	half := z.addOp("dgate", graph.Mul, none, dsum, p1) // of p1*p1: twice this
	twice := z.addOp("twice", graph.Scale, graph.Attrs{Factor: 2}, half)
	dp1 := z.addOp("dp1", graph.Accumulate, none, twice, dsum)
	dr := z.addOp("dr", graph.MaxPoolDX, pool, r, p1, dp1)
	dn := z.addOp("dn", graph.ReLUDX, none, n, r, dr)
	onto.Extent = [2]int{8, 8}
	dr = z.addOp("dr again", graph.MaxPoolIndicesDX, onto, indexed[1], dp1)
	dn = z.addOp("dn twice", graph.Add, graph.Attrs{InPlace: 1}, dn, z.addOp("dn again", graph.ReLUYDX, none, r, dr))
	dy := z.Op("dy", graph.BatchNormGrad, norm, y, stats[0], stats[1], gamma, dn)
	dw, db := z.addOp("dw", graph.Conv2DDW, conv, x, dy[0]), z.addOp("db", graph.BiasDB, none, dy[0])
	conv.Extent = [2]int{8, 8}
	z.addOp("dx", graph.Conv2DDX, conv, dy[0], w)

	z.SetPhase(graph.Optimize)
	adam := graph.Attrs{LearningRate: 0.01, Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8}
	z.Op("adam w", graph.Adam, adam, w, dw, z.state("w.m", 4, 3, 3, 3), z.state("w.v", 4, 3, 3, 3))
	z.Op("momentum v", graph.Momentum, graph.Attrs{LearningRate: 0.01, Momentum: 0.9}, v, dv, z.state("v.m", 3, 16))
	for _, u := range [][2]graph.TensorID{{b, db}, {gamma, dy[1]}, {beta, dy[2]}, {c, dc}} {
		z.Op("sgd "+z.Peek().Tensors[u[0]].Name, graph.SGD, graph.Attrs{LearningRate: 0.01}, u[0], u[1])
	}
	return finish(z.Builder)
}

type zoo struct{ *graph.Builder }

func (z *zoo) addOp(name string, kind graph.Kind, attrs graph.Attrs, inputs ...graph.TensorID) graph.TensorID {
	return z.Op(name, kind, attrs, inputs...)[0]
}

func (z *zoo) parameter(name string, extents ...int) graph.TensorID {
	return z.Persistent(name, graph.Parameter, extents, graph.Init{Kind: graph.InitNormal, Scale: 0.3})
}

func (z *zoo) state(name string, extents ...int) graph.TensorID {
	return z.Persistent(name, graph.State, extents, graph.Init{Kind: graph.InitOne})
}
