package passes

import (
	"testing"

	"tensile/graph"
)

// TestGradients adds three gradients up in place of the first that is forgotten, makes a ReLU's gradient in place of
// dy, and keeps a dy that another op reads later.
func TestGradients(t *testing.T) {
	n := newNet(t)
	x := n.images("x")
	y := n.one("y", graph.ReLU, graph.Attrs{}, x)
	z := n.one("z", graph.Add, graph.Attrs{}, y, y) // of the forward phase, which is another pass's
	n.backward()
	a := n.one("a", graph.Mul, graph.Attrs{}, x, z)
	b := n.one("b", graph.Mul, graph.Attrs{}, a, z)
	c := n.one("c", graph.Mul, graph.Attrs{}, a, y)
	sum := n.one("sum", graph.Add, graph.Attrs{}, a, b) // a is read by last, b is not
	sum = n.one("sum of three", graph.Add, graph.Attrs{}, sum, c)
	dx := n.one("dx", graph.ReLUYDX, graph.Attrs{}, y, sum)
	n.one("last", graph.Add, graph.Attrs{}, dx, a)
	g, o := n.after("gradients")
	wantInPlace(t, g, "sum", 1)
	wantInPlace(t, g, "sum of three", 0)
	wantInPlace(t, g, "dx", 1)
	wantInPlace(t, g, "last", 0)
	wantInPlace(t, g, "z", -1)
	wantRefused(t, o, Refusal{"a", "x is of role input"}, Refusal{"b", "last reads a later"},
		Refusal{"c", "last reads a later"})
	if v := g.Version(opOf(t, g, "last").Outputs[0]); v.Number != 4 || o.Changed != 4 {
		t.Errorf("the sum is %+v after %d changes", v, o.Changed)
	}
}

// The gradient of a normalisation takes the place of dy, not of x, which is made again as an activation.
func TestGradientsOfNormalisation(t *testing.T) {
	n := newNet(t)
	x := n.images("x")
	gamma := n.Persistent("gamma", graph.Parameter, graph.Shape{1}, graph.Init{Kind: graph.InitOne})
	y := n.one("y", graph.ReLU, graph.Attrs{}, x)
	stats := n.Op("stats", graph.BatchNormStats, graph.Attrs{}, y)
	n.backward()
	dy := n.one("dy", graph.Mul, graph.Attrs{}, x, x)
	norm := graph.Attrs{Epsilon: 1e-5}
	n.Op("first", graph.BatchNormGrad, norm, y, stats[0], stats[1], gamma, dy)
	n.Op("second", graph.BatchNormGrad, norm, y, stats[0], stats[1], gamma, dy)
	g, o := n.after("gradients")
	wantInPlace(t, g, "first", -1)
	wantInPlace(t, g, "second", 4)
	wantRefused(t, o, Refusal{"dy", "x is of role input"}, Refusal{"first", "second reads dy later"})
}
