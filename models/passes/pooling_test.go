package passes

import (
	"slices"
	"testing"

	"tensile/graph"
)

// TestPooling rewrites a max-pooling with two gradients and an average, and leaves those that do not belong together or
// have a window beyond a byte.
func TestPooling(t *testing.T) {
	n := newNet(t)
	x, other := n.images("x"), n.images("other")
	a := graph.Attrs{Kernel: [2]int{2, 2}, Stride: [2]int{2, 2}}
	y := n.one("max", graph.MaxPool, a, x)
	unused := n.one("max without gradient", graph.MaxPool, a, other)
	mean := n.one("avg", graph.AvgPool, a, x)
	large := n.Input("large", graph.Anything, graph.Float32, graph.Shape{1, 1, 16, 16})
	all := graph.Attrs{Kernel: [2]int{16, 16}, Stride: [2]int{1, 1}}
	top := n.one("max of all", graph.MaxPool, all, large)
	n.backward()
	n.one("dx", graph.MaxPoolDX, a, x, y, unused)
	n.one("dx again", graph.MaxPoolDX, a, x, y, mean)
	n.one("dx of others", graph.MaxPoolDX, a, other, y, unused)
	n.one("dx of all", graph.MaxPoolDX, all, large, top, top)
	n.one("dx of avg", graph.AvgPoolDX, a, x, mean, y)
	g, o := n.after("pooling")

	if o.Changed != 3 || o.All != -8 { // two images give 8 windows
		t.Errorf("%d places changed, %d bytes saved", o.Changed, o.All)
	}
	wantRefused(t, o, Refusal{"dx of others", "max was not pooled from other"},
		Refusal{"dx of all", "a window of 16x16 has more than 255 elements"})
	max := opOf(t, g, "max")
	if max.Kind != graph.MaxPoolIndices || len(max.Outputs) != 2 {
		t.Fatalf("max is %+v", max)
	}
	for _, name := range []string{"dx", "dx again"} {
		dx := opOf(t, g, name)
		if dx.Kind != graph.MaxPoolIndicesDX || dx.Inputs[0] != max.Outputs[1] || len(dx.Inputs) != 2 {
			t.Errorf("%s is %+v", name, dx)
		}
	}
	if dx := opOf(t, g, "dx of avg"); dx.Kind != graph.AvgPoolDYDX || !slices.Equal(dx.Inputs, max.Outputs[:1]) {
		t.Errorf("dx of avg is %+v", dx)
	}
	if op := opOf(t, g, "max without gradient"); op.Kind != graph.MaxPool {
		t.Errorf("a max-pooling without a gradient is %+v", op)
	}
}
