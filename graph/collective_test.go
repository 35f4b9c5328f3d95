package graph

import (
	"strings"
	"testing"
)

// reduced is a graph that makes one gradient and reduces it.
func reduced(t *testing.T, replicas int) *Graph {
	t.Helper()
	b := NewBuilder("reduced")
	x := b.Input("x", Anything, Float32, Shape{2, 3})
	w := b.Persistent("w", Parameter, Shape{5, 3}, Init{Kind: InitZero})
	y := b.Op("y", Linear, Attrs{}, x, w)[0]
	b.SetPhase(Backward)
	dw := b.Op("dw", LinearDW, Attrs{}, x, y)[0]
	mean := b.Op("mean", AllReduce, Attrs{Replicas: replicas}, dw)[0]
	b.SetPhase(Optimize)
	b.Op("update", SGD, Attrs{LearningRate: 1}, w, mean)
	g, err := b.Graph()
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Validate(); err != nil {
		t.Fatal(err)
	}
	return g
}

// An all-reduce updates its gradient in place, costs what goes over the network, and is executed once.
func TestAllReduce(t *testing.T) {
	g := reduced(t, 4)
	const op = 2
	if g.Replicas() != 4 || g.Pure(op) || g.Repeatable(op) || g.Updated(op, 0) != 0 {
		t.Errorf("%d replicas, pure %v, repeatable %v, updates input %d", g.Replicas(), g.Pure(op), g.Repeatable(op),
			g.Updated(op, 0))
	}
	if got, want := g.Cost(op), (Cost{FLOPs: 30, Bytes: 120, Network: 60, Hops: 6}); got != want {
		t.Errorf("it costs %+v, want %+v", got, want)
	}
	if got := g.Cost(op - 1); got.Network != 0 || got.Hops != 0 {
		t.Errorf("another op costs %+v", got)
	}
	for _, n := range []int{-1, 0, 1, MaxReplicas + 1} {
		_, err := Infer(AllReduce, Attrs{Replicas: n}, []Shape{{2}})
		if err == nil || !strings.Contains(err.Error(), "must be 2 to 1024") {
			t.Errorf("%d replicas: error %v", n, err)
		}
	}
}
