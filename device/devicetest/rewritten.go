package devicetest

import (
	"strings"

	"tensile/graph"
	"tensile/plan/compile"
	"tensile/plan/proof"
)

// Rewritten is Tiny as another graph that trains to the same bits: an activation is made once more for the gradients,
// updates come as soon as they can, and inputs and persistent storages are declared in another order.
func Rewritten() *graph.Graph {
	b := graph.NewBuilder("rewritten")
	normal := graph.Init{Kind: graph.InitNormal, Scale: 0.5}
	zero := graph.Init{Kind: graph.InitZero}
	labels := b.Input("labels", graph.Anything, graph.Float32, graph.Shape{4})
	m := b.Persistent("w2.m", graph.State, graph.Shape{3, 5}, zero)
	w2 := b.Persistent("w2", graph.Parameter, graph.Shape{3, 5}, normal)
	w1 := b.Persistent("w1", graph.Parameter, graph.Shape{5, 6}, normal)
	x := b.Input("x", graph.Anything, graph.Float32, graph.Shape{4, 6})
	b1 := b.Persistent("b1", graph.Parameter, graph.Shape{5}, zero)

	h := b.Op("h", graph.Linear, graph.Attrs{}, x, w1, b1)[0]
	r := b.Op("r", graph.ReLU, graph.Attrs{}, h)[0]
	again := b.Op("r again", graph.ReLU, graph.Attrs{}, h)[0]
	z := b.Op("z", graph.Linear, graph.Attrs{}, r, w2)[0]
	loss := b.Op("loss", graph.SoftmaxXent, graph.Attrs{}, z, labels)
	b.Output(loss[0])

	b.SetPhase(graph.Backward)
	dz := b.Op("dz", graph.SoftmaxXentDX, graph.Attrs{}, loss[1], labels)[0]
	dr := b.Op("dr", graph.LinearDX, graph.Attrs{}, dz, w2)[0]
	dw2 := b.Op("dw2", graph.LinearDW, graph.Attrs{}, again, dz)[0]
	b.SetPhase(graph.Optimize)
	b.Op("momentum w2", graph.Momentum, graph.Attrs{LearningRate: rate, Momentum: 0.9}, w2, dw2, m)
	b.SetPhase(graph.Backward)
	dh := b.Op("dh", graph.ReLUDX, graph.Attrs{}, h, again, dr)[0]
	db1 := b.Op("db1", graph.BiasDB, graph.Attrs{}, dh)[0]
	b.SetPhase(graph.Optimize)
	b.Op("sgd b1", graph.SGD, graph.Attrs{LearningRate: rate}, b1, db1)
	b.SetPhase(graph.Backward)
	dw1 := b.Op("dw1", graph.LinearDW, graph.Attrs{}, x, dh)[0]
	b.SetPhase(graph.Optimize)
	b.Op("sgd w1", graph.SGD, graph.Attrs{LearningRate: rate}, w1, dw1)
	return finish(b)
}

// changeGraphs changes a job between programs of two graphs that keep the same storages on the host. Nothing shows of
// it in the bits. A program of a graph that keeps others is refused, and the job goes on as it was.
func changeGraphs(c *crew) {
	tiny, other := Tiny(), Rewritten()
	keep := Build(c.t, c.d, tiny, KeepAll(tiny), compile.Options{})
	want := c.run(tiny, 6, keep)
	for seed := range uint64(6) {
		o := compile.Options{Poison: seed%2 == 0}
		first, second := shuffled(c, tiny, seed, o), shuffled(c, other, seed+100, o)
		third := Build(c.t, c.d, other, KeepAll(other), o)
		compareBits(c.t, "tiny, rewritten, tiny", c.run(tiny, 2, first, second, first), want)
		compareBits(c.t, "rewritten twice, tiny", c.run(tiny, 2, third, second, keep), want)
	}

	s := c.open(tiny)
	p := s.load(keep)
	s.train(p, 0, 1)
	c.wait()
	zoo := Zoo()
	err := s.Load(Build(c.t, c.d, zoo, KeepAll(zoo), compile.Options{}))
	if err == nil || !strings.Contains(err.Error(), `graph "zoo"`) || strings.Contains(err.Error(), "\n") {
		c.t.Errorf("a program of another network: error %v, want one line that names the graph", err)
	}
	if err := s.Load(proof.Proven{}); err == nil || !strings.Contains(err.Error(), "its program was not proven") {
		c.t.Errorf("a program that was not proven: error %v", err)
	}
	s.train(p, 1, 2)
	c.wait()
}
