package tensile

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"tensile/graph"
	"tensile/plan/compile"
	"tensile/plan/proof"

	_ "tensile/internal/long"
	"tensile/scheduler/draft"
	"tensile/scheduler/jobtest"
)

// the flag -long

// proven proves the plan of a draft.
func proven(t *testing.T, seed uint64, d *draft.Draft) {
	t.Helper()
	g := d.Graph()
	p := d.Plan("tensile")
	p.Graph = g.Digest()
	if err := proof.Validate(g, p); err != nil {
		t.Fatalf("seed %d: %v\n%s", seed, err, p.Text(g))
	}
	l, err := compile.Place(g, p, jobtest.Align)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := compile.Prove(g, p, l, compile.Options{}); err != nil {
		t.Fatalf("seed %d: %v\n%s", seed, err, p.Text(g))
	}
}

// TestChainsAreValid recomputes random sets of what can be recomputed: every plan is proven, with and without swaps.
func TestChainsAreValid(t *testing.T) {
	again, chained, alone := 0, 0, 0
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
		for s, chosen := range c.chosen {
			if chosen && c.Graph().Storages[s].Role == graph.Output {
				t.Fatalf("seed %d: output %d is recomputed", seed, s)
			}
			if chosen && c.noChains {
				alone++
				resident(t, seed, c, graph.StorageID(s))
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
	if again < 600 || chained < 100 || alone < 100 {
		t.Errorf("%d recomputations, %d just behind another, %d without chains", again, chained, alone)
	}
}

// resident checks that what is read to make a storage again is there when its gap ends, whatever else is made again.
func resident(t *testing.T, seed uint64, c *chains, s graph.StorageID) {
	t.Helper()
	at := c.gaps[s].To()
	for _, slot := range c.Writes(s) {
		for _, y := range c.Touches(c.Steps()[slot].Op) {
			x := c.gaps[y]
			away := c.chosen[y] && x.From() < at-1 && at <= x.To() && c.since[y] > at
			gone := c.LastUse(y) < at && !c.Graph().Storages[y].Role.FromHost()
			if made := slices.Contains(c.Makes(c.Steps()[slot].Op), y); !made && (away || gone) {
				t.Fatalf("seed %d: without chains %d is made again of %d, which is not there", seed, s, y)
			}
		}
	}
}
