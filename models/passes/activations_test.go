package passes

import (
	"slices"
	"testing"

	"tensile/graph"
)

// TestActivations has a ReLU and its gradient need one storage less, and refuses what others read later, what outlives
// the iteration, and what is only a part.
func TestActivations(t *testing.T) {
	n := newNet(t)
	x := n.images("x")
	w := n.Persistent("w", graph.Parameter, graph.Shape{2, 1, 4, 4}, graph.Init{Kind: graph.InitOne})
	a := n.one("a", graph.Mul, graph.Attrs{}, x, w)
	y := n.one("relu", graph.ReLU, graph.Attrs{}, a)
	sum := n.one("sum", graph.Add, graph.Attrs{}, x, y) // y is read by the gradient of the ReLU
	gate := n.one("gate", graph.Sigmoid, graph.Attrs{}, sum)
	twice := n.one("twice", graph.Add, graph.Attrs{}, gate, gate)
	half := n.View("half", twice, 0, graph.Shape{1, 1, 4, 4})
	part := n.one("part", graph.Tanh, graph.Attrs{}, half)
	n.Output(n.one("loss", graph.ReLU, graph.Attrs{}, part))
	n.backward()
	n.one("dx", graph.ReLUDX, graph.Attrs{}, a, y, gate)
	g, o := n.after("activations")

	dx := opOf(t, g, "dx")
	if dx.Kind != graph.ReLUYDX || !slices.Equal(dx.Inputs, []graph.TensorID{opOf(t, g, "relu").Outputs[0],
		opOf(t, g, "gate").Outputs[0]}) {
		t.Errorf("dx is %+v", dx)
	}
	wantInPlace(t, g, "relu", 0)
	wantInPlace(t, g, "gate", 0)
	if o.Changed != 3 || o.All != 2*2*16*graph.ElementBytes {
		t.Errorf("%d places changed, %d bytes saved", o.Changed, o.All)
	}
	wantRefused(t, o, Refusal{"a", "x is of role input"}, Refusal{"sum", "x is of role input"},
		Refusal{"twice", "dx reads gate later"}, Refusal{"part", "half is a part of twice"},
		Refusal{"loss", "part is of role activation, loss of role output"})
}

// A chain of ops in place makes one storage of as many versions.
func TestActivationsChain(t *testing.T) {
	n := newNet(t)
	x := n.images("x")
	y := n.one("a", graph.ReLU, graph.Attrs{}, x)
	y = n.one("b", graph.Tanh, graph.Attrs{}, y)
	y = n.one("c", graph.Sigmoid, graph.Attrs{}, y)
	n.Output(n.one("d", graph.Add, graph.Attrs{}, y, x))
	g, o := n.after("activations")
	if v := g.Version(opOf(t, g, "c").Outputs[0]); v.Number != 2 || o.Changed != 2 || len(g.Storages) != 3 {
		t.Errorf("c makes %+v of %d storages after %d changes", v, len(g.Storages), o.Changed)
	}
	if !g.Repeatable(opOf(t, g, "c").ID) || g.Pure(opOf(t, g, "c").ID) {
		t.Error("an op in place may be repeated and is not pure")
	}
}

// Nothing is made in place of what another op updates.
func TestActivationsUpdated(t *testing.T) {
	n := newNet(t)
	x := n.images("x")
	y := n.one("y", graph.ReLU, graph.Attrs{}, x)
	z := n.one("z", graph.Tanh, graph.Attrs{}, y)
	n.Output(n.one("sum", graph.Add, graph.Attrs{}, n.one("scaled", graph.Scale, graph.Attrs{Factor: 2}, y), z))
	g, o := n.after("activations")
	wantInPlace(t, g, "z", -1)
	wantRefused(t, o, Refusal{"y", "x is of role input"}, Refusal{"z", "y is updated by another op"},
		Refusal{"sum", "y is of role activation, sum of role output"})
}
