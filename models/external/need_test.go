package external_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"tensile/graph/cost"
	"tensile/models/external"
	"tensile/models/graphtest"
	"tensile/scheduler"
	"tensile/scheduler/planner"
)

// What a script needs without a plan is the peak of the plan that is made for it without a limit.
func TestNeed(t *testing.T) {
	if got := external.Need(external.Claim(640)); got != 640 {
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
		if got, want := external.Need(g), p.Jobs[0].Footprint.Peak; got != want {
			t.Errorf("seed %d: it needs %d, and the plan has %d", seed, got, want)
		}
	}
}
