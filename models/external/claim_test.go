package external

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"tensile/graph"
	"tensile/graph/cost"
	_ "tensile/internal/long" // the flag -long
	"tensile/models/graphtest"
	"tensile/scheduler"
	"tensile/scheduler/planner"
)

// A claim is a graph that a script can have recorded, of just its bytes, and claims of one size are equal.
func TestClaim(t *testing.T) {
	for _, size := range []graph.Bytes{1, 3, 4 * graph.GiB, graph.MaxBytes} {
		g := Claim(size)
		if err := checkGraph(g); err != nil {
			t.Fatalf("%s: %v", size, err)
		}
		if got := g.Storages[0].Bytes; got != size || len(g.Ops) != 1 || Claim(size).Digest() != g.Digest() ||
			Claim(size+1).Digest() == g.Digest() {
			t.Errorf("%s: a graph of %s in %d ops", size, got, len(g.Ops))
		}
	}
}

// What a script needs without a plan is the peak of the plan that is made for it without a limit.
func TestNeed(t *testing.T) {
	if got := Need(Claim(640)); got != 640 {
		t.Errorf("a claim of 640 bytes needs %d", got)
	}
	for seed := range uint64(200) {
		g := graphtest.Script(rand.New(rand.NewPCG(seed, 3)))
		p, err := planner.Plan(t.Context(), scheduler.Request{Policy: "none-live", Align: 1, Out: cost.Link{Rate: 1e9},
			In: cost.Link{Rate: 1e9}, Jobs: []scheduler.Job{{Name: "a", Epoch: 1, Graph: g,
				Latency: slices.Repeat([]time.Duration{time.Microsecond}, len(g.Ops))}}})
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if got, want := Need(g), p.Jobs[0].Footprint.Peak; got != want {
			t.Errorf("seed %d: it needs %d, and the plan has %d", seed, got, want)
		}
	}
}
