package peak_test

import (
	"testing"

	"tensile/graph"
	"tensile/peak"
)

// TestVanilla follows a graph that can be drawn; a letter is a storage of 40 bytes on the device. w and m stay, x
// leaves after a, a after b, u, which nothing uses, never comes.
//
//	slot   0 (a from x)   1 (b from a, a)   2 (w, m)
//	       w m x a        w m a b           w m b
func TestVanilla(t *testing.T) {
	b := graph.NewBuilder("chain")
	x := b.Input("x", graph.Anything, graph.Float32, graph.Shape{10})
	zero := graph.Init{Kind: graph.InitZero}
	w, m := b.Persistent("w", graph.Parameter, graph.Shape{10}, zero), b.Persistent("m", graph.State, graph.Shape{10},
		zero)
	b.Input("u", graph.Anything, graph.Float32, graph.Shape{1000})
	y := b.Op("a", graph.ReLU, graph.Attrs{}, x)[0]
	y = b.Op("b", graph.Mul, graph.Attrs{}, y, y)[0]
	b.Output(y)
	b.Op("w.update", graph.Momentum, graph.Attrs{LearningRate: 1}, w, y, m)
	g, err := b.Graph()
	if err != nil {
		t.Fatal(err)
	}
	if all, live := peak.Vanilla(g); all != 200 || live != 160 {
		t.Errorf("%d and %d bytes, want 200 and 160", all, live)
	}
}
