package devicetest

import "tensile/graph"

// Paged is a training step whose storages are about as large as pages of a device: a chain of activations, its
// gradients, a parameter that all share and a small one.
func Paged(page graph.Bytes) *graph.Graph {
	b := graph.NewBuilder("paged")
	const classes = 3
	n := int(page/graph.ElementBytes) * 3 / 4
	x := b.Input("x", graph.Anything, graph.Float32, graph.Shape{4, n / 4})
	labels := b.Input("labels", graph.Anything, graph.Float32, graph.Shape{4})
	w := b.Persistent("w", graph.Parameter, graph.Shape{classes, n / 4},
		graph.Init{Kind: graph.InitNormal, Scale: 0.01})
	m := b.Persistent("w.m", graph.State, graph.Shape{classes, n / 4}, graph.Init{Kind: graph.InitZero})
	var chain []graph.TensorID
	h := x
	for _, name := range []string{"r1", "r2", "r3", "r4"} {
		next := b.Op(name, graph.ReLU, graph.Attrs{}, h)[0]
		chain = append(chain, h)
		h = next
	}
	chain = append(chain, h)
	z := b.Op("z", graph.Linear, graph.Attrs{}, h, w)[0]
	loss := b.Op("loss", graph.SoftmaxXent, graph.Attrs{}, z, labels)
	b.Output(loss[0])

	b.SetPhase(graph.Backward)
	dz := b.Op("dz", graph.SoftmaxXentDX, graph.Attrs{}, loss[1], labels)[0]
	d := b.Op("dh", graph.LinearDX, graph.Attrs{}, dz, w)[0]
	for i := len(chain) - 1; i > 0; i-- {
		d = b.Op("d"+string(rune('0'+i)), graph.ReLUDX, graph.Attrs{}, chain[i-1], chain[i], d)[0]
	}
	dw := b.Op("dw", graph.LinearDW, graph.Attrs{}, d, dz)[0]
	b.SetPhase(graph.Optimize)
	b.Op("momentum", graph.Momentum, graph.Attrs{LearningRate: rate, Momentum: 0.9}, w, dw, m)
	return finish(b)
}
