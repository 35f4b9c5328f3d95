package devicetest

import (
	"fmt"

	"tensile/graph"
)

// rate is the learning rate of Tiny.
const rate = 0.5

// Tiny is one training step of a perceptron with 6 inputs, a hidden layer of 5 and 3 classes on a batch of 4. Its
// persistent storages are w1, b1, w2 and w2.m; its output is loss.
func Tiny() *graph.Graph {
	b := graph.NewBuilder("tiny")
	normal := graph.Init{Kind: graph.InitNormal, Scale: 0.5}
	zero := graph.Init{Kind: graph.InitZero}
	x := b.Input("x", graph.Anything, graph.Float32, graph.Shape{4, 6})
	labels := b.Input("labels", graph.Anything, graph.Float32, graph.Shape{4})
	w1 := b.Persistent("w1", graph.Parameter, graph.Shape{5, 6}, normal)
	b1 := b.Persistent("b1", graph.Parameter, graph.Shape{5}, zero)
	w2 := b.Persistent("w2", graph.Parameter, graph.Shape{3, 5}, normal)
	m := b.Persistent("w2.m", graph.State, graph.Shape{3, 5}, zero)

	h := b.Op("h", graph.Linear, graph.Attrs{}, x, w1, b1)[0]
	r := b.Op("r", graph.ReLU, graph.Attrs{}, h)[0]
	z := b.Op("z", graph.Linear, graph.Attrs{}, r, w2)[0]
	loss := b.Op("loss", graph.SoftmaxXent, graph.Attrs{}, z, labels)
	b.Output(loss[0])

	b.SetPhase(graph.Backward)
	dz := b.Op("dz", graph.SoftmaxXentDX, graph.Attrs{}, loss[1], labels)[0]
	dw2 := b.Op("dw2", graph.LinearDW, graph.Attrs{}, r, dz)[0]
	dr := b.Op("dr", graph.LinearDX, graph.Attrs{}, dz, w2)[0]
	dh := b.Op("dh", graph.ReLUDX, graph.Attrs{}, h, r, dr)[0]
	dw1 := b.Op("dw1", graph.LinearDW, graph.Attrs{}, x, dh)[0]
	db1 := b.Op("db1", graph.BiasDB, graph.Attrs{}, dh)[0]

	b.SetPhase(graph.Optimize)
	b.Op("sgd w1", graph.SGD, graph.Attrs{LearningRate: rate}, w1, dw1)
	b.Op("sgd b1", graph.SGD, graph.Attrs{LearningRate: rate}, b1, db1)
	b.Op("momentum w2", graph.Momentum, graph.Attrs{LearningRate: rate, Momentum: 0.9}, w2, dw2, m)
	return finish(b)
}

// finish returns the builder's graph. The graphs of this package are right or do not start.
func finish(b *graph.Builder) *graph.Graph {
	g, err := b.Graph()
	if err == nil {
		err = g.Validate()
	}
	if err != nil {
		panic(fmt.Sprintf("devicetest: %v", err))
	}
	return g
}
