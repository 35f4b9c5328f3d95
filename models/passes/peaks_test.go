package passes_test

import (
	"testing"

	"tensile/graph"
	"tensile/models"
	"tensile/models/passes"
	"tensile/peak"
	"tensile/scheduler/draft"
)

// published are what five networks need at batch 16 with Adam, in MB: by an independent count for ReLUs in place,
// forward and backward, gradients added up in place, a byte per window of a pool, updates next to their gradients, and
// parameters above 16 MiB in tiles.
var published = []struct {
	model     string
	live, all graph.Bytes
}{
	{"vgg16", 2677, 4181}, {"inceptionv3", 1794, 3834}, {"inceptionv4", 3195, 7233}, {"resnet50", 1667, 3653},
	{"densenet121", 2119, 4962},
}

// TestPeaks compares what the networks need after all passes with what was published. The live peak is the same within
// a thousandth. With nothing freed they need less: the gradients of normalisations and the sums of residuals are made
// in place as well.
func TestPeaks(t *testing.T) {
	const mb = 1_000_000
	for _, want := range published {
		g, err := models.Build(want.model, models.Config{Batch: 16})
		if err != nil {
			t.Fatal(err)
		}
		rewritten, _, err := passes.Apply(g, passes.Names())
		if err != nil {
			t.Fatal(err)
		}
		all, _ := peak.Vanilla(rewritten)
		_, live := peak.Vanilla(reordered(rewritten, draft.EarlyUpdates(rewritten)))
		if diff := live - want.live*mb; max(diff, -diff) > want.live*mb/1000 {
			t.Errorf("%s: %d bytes live, want %d MB", want.model, live, want.live)
		}
		if all > want.all*mb {
			t.Errorf("%s: %d bytes with nothing freed, want at most %d MB", want.model, all, want.all)
		}
	}
}

// reordered returns the graph with its ops in another order.
func reordered(g *graph.Graph, order []graph.OpID) *graph.Graph {
	r := *g
	r.Ops = nil
	for _, id := range order {
		op := g.Ops[id]
		op.ID, op.Forward = graph.OpID(len(r.Ops)), graph.NoOp
		r.Ops = append(r.Ops, op)
	}
	return &r
}
