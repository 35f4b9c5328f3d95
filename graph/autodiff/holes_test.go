package autodiff_test

import (
	"slices"
	"testing"

	"tensile/device/cpu/kernel"
	"tensile/device/devicetest"
	"tensile/graph"
	"tensile/graph/autodiff"
)

// TestHoles lists every hole in the table of ops: a kind that the zoo of the conformance suite does not use, so that
// nothing is known of its shapes; one that costs nothing; one without a gradient or a reason for having none, or with
// both; one without a kernel. CONTRIBUTING.md says what belongs to a new kind.
func TestHoles(t *testing.T) {
	zoo := devicetest.Zoo()
	kinds := graph.Kinds()
	slices.Sort(kinds)
	for _, k := range kinds {
		i := slices.IndexFunc(zoo.Ops, func(op graph.Op) bool { return op.Kind == k })
		if i < 0 {
			t.Errorf("%s: no shapes: devicetest.Zoo has no op of the kind", k)
		} else if c := zoo.Cost(graph.OpID(i)); c.Bytes <= 0 || c.FLOPs < 0 {
			t.Errorf("%s: its cost is %+v", k, c)
		}
		switch has, reason := autodiff.GradientOf(k); {
		case has && reason != "":
			t.Errorf("%s: it has a gradient, and a reason for having none: %s", k, reason)
		case !has && reason == "":
			t.Errorf("%s: no gradient, and no reason", k)
		}
		if i >= 0 && !hasKernel(zoo, zoo.Ops[i]) {
			t.Errorf("%s: no kernel on the cpu device", k)
		}
	}
}

func hasKernel(g *graph.Graph, op graph.Op) (has bool) {
	defer func() { has = recover() == nil }() // kernel panics on a kind that it does not know
	kernel.Scratch(op.Kind, op.Attrs, g.Shapes(op.Inputs), g.Shapes(op.Outputs))
	return
}
