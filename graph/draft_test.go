package graph

import "testing"

// tiny builds x -> linear -> relu -> loss with the backward pass and SGD, by hand. Op ids: 0 fc, 1 relu, 2 loss,
// 3 loss.dx, 4 relu.dx, 5 fc.dw, 6 w.update. Storage ids: 0 x, 1 labels, 2 w, then one per fresh output.
func tiny(t *testing.T) *Graph {
	t.Helper()
	b := NewBuilder("tiny")
	x := b.Input("x", Anything, Float32, Shape{2, 3})
	labels := b.Input("labels", Anything, Float32, Shape{2})
	w := b.Persistent("w", Parameter, Shape{4, 3}, Init{Kind: InitNormal, Scale: 0.5})
	b.SetLayer("fc")
	fc := b.Op("fc", Linear, Attrs{}, x, w)[0]
	relu := b.Op("relu", ReLU, Attrs{}, fc)[0]
	b.SetLayer("loss")
	loss := b.Op("loss", SoftmaxXent, Attrs{}, relu, labels)
	b.Output(loss[0])
	b.SetPhase(Backward)
	b.SetForward(2)
	d := b.Op("loss.dx", SoftmaxXentDX, Attrs{}, loss[1], labels)[0]
	b.SetForward(1)
	d = b.Op("relu.dx", ReLUDX, Attrs{}, fc, relu, d)[0]
	b.SetForward(0)
	dw := b.Op("fc.dw", LinearDW, Attrs{}, x, d)[0]
	b.SetPhase(Optimize)
	b.SetForward(NoOp)
	b.Op("w.update", SGD, Attrs{LearningRate: 0.1}, w, dw)
	g, err := b.Graph()
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Validate(); err != nil {
		t.Fatal(err)
	}
	return g
}
