package tensile

import (
	"math/rand/v2"
	"testing"
	"time"

	"tensile/graph"
	"tensile/internal/randjobs"
	"tensile/plan"
	"tensile/program"
	"tensile/scheduler/draft"
)

// proven proves the plan of a draft.
func proven(t *testing.T, seed uint64, d *draft.Draft) {
	t.Helper()
	g := d.Graph()
	p := d.Plan("tensile")
	p.Graph = g.Digest()
	if err := plan.Validate(g, p); err != nil {
		t.Fatalf("seed %d: %v\n%s", seed, err, p.Text(g))
	}
	l, err := program.Place(g, p, randjobs.Align)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := program.Prove(g, p, l, program.Options{}); err != nil {
		t.Fatalf("seed %d: %v\n%s", seed, err, p.Text(g))
	}
}

// TestChainsAreValid recomputes random sets of what can be recomputed: every plan is proven, with and without swaps.
func TestChainsAreValid(t *testing.T) {
	again, chained := 0, 0
	for seed := range uint64(1000) {
		rng := rand.New(rand.NewPCG(seed, 62))
		s, o := randomJobs(rng, 1)
		c := newChains(s.Drafts(draft.GraphOrder, o.style())[0], rng.IntN(4) == 0)
		share := rng.IntN(4)
		c.begin(0)
		for _, op := range draft.GraphOrder(c.Graph()) {
			for _, s := range c.Makes(op) {
				if c.gaps[s] == nil || c.chosen[s] || rng.IntN(4) < share || c.noChains && len(c.needs[s]) > 0 {
					continue
				}
				if c.trial = (recomputable{storage: s}); c.try(s, time.Hour, perGiB(rng.Int64N(int64(time.Hour)))) {
					c.choose(s)
				}
			}
		}
		steps, took := c.insert()
		d := s.Draft(0, steps, o.style())
		previous := graph.StorageID(-1)
		for _, s := range steps {
			if s.Want >= 0 {
				again++
				took -= d.Latency(s.Op)
				if previous >= 0 {
					chained++
				}
			}
			previous = s.Want
		}
		if took != 0 {
			t.Fatalf("seed %d: recomputations take %v more than they should", seed, took)
		}
		proven(t, seed, d)
		draft.SwapFreely([]*draft.Draft{d}, 0)
		proven(t, seed, d)
	}
	t.Logf("%d recomputations, %d just behind another", again, chained)
	if again < 600 || chained < 100 {
		t.Errorf("%d recomputations, %d just behind another", again, chained)
	}
}
