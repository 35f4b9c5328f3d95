package passes

import (
	"testing"

	"tensile/graph"
)

// TestDropout makes a dropout and its gradient in place, but not one whose operand is read later.
func TestDropout(t *testing.T) {
	n := newNet(t)
	x := n.images("x")
	a := graph.Attrs{Rate: 0.5, Key: 1}
	h := n.one("h", graph.ReLU, graph.Attrs{}, x)
	d := n.one("d", graph.Dropout, a, h)
	e := n.one("e", graph.Dropout, a, d)
	n.backward()
	de := n.one("de", graph.Mul, graph.Attrs{}, e, h)
	n.one("dd", graph.DropoutDX, a, de)
	g, o := n.after("dropout")
	wantInPlace(t, g, "d", -1)
	wantInPlace(t, g, "e", 0)
	wantInPlace(t, g, "dd", 0)
	wantRefused(t, o, Refusal{"d", "de reads h later"})
	if o.Changed != 2 || o.All != 2*2*16*graph.ElementBytes {
		t.Errorf("%d places changed, %d bytes saved", o.Changed, o.All)
	}
}
