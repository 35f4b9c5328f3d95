package proof_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"tensile/graph"
	"tensile/internal/long"
	"tensile/models/graphtest"
	"tensile/plan"
	"tensile/plan/compile"
	"tensile/plan/proof"
)

// TestWhatValidateAcceptsChecks changes plans at random, most often for the worse. Validate rejects them, or their
// programs pass Check: between them nothing is lost.
func TestWhatValidateAcceptsChecks(t *testing.T) {
	seeds := long.Rounds(100, 1000)
	accepted, rejected := 0, 0
	for seed := range seeds {
		s := random(t, seed, graphtest.Options{Ops: 16})
		rng := rand.New(rand.NewPCG(seed, 7))
		for change := range 12 {
			bad := s.withPlan()
			for range 1 + change/4 {
				bad.change(rng)
			}
			plan.Sort(bad.p.Moves)
			if proof.Validate(bad.g, bad.p) != nil {
				rejected++
				continue
			}
			accepted++
			l, err := compile.Place(bad.g, bad.p, align)
			if err != nil {
				t.Fatalf("%s: %v\n%s", s.name, err, bad.p.Text(s.g))
			}
			for _, poison := range []bool{false, true} {
				if err := proof.Check(compile.Compile(bad.g, bad.p, l,
					compile.Options{Poison: poison})); err != nil {
					t.Fatalf("%s, poison %v: %v\n%s", s.name, poison, err, bad.p.Text(s.g))
				}
			}
		}
	}
	t.Logf("%d plans accepted, %d rejected", accepted, rejected)
	if accepted < int(seeds) || rejected < int(seeds) {
		t.Errorf("%d plans accepted, %d rejected of %d", accepted, rejected, 12*seeds)
	}
}

// change makes one small change to the plan.
func (s subject) change(rng *rand.Rand) {
	p := s.p
	slot := rng.IntN(len(p.Steps))
	switch kind := rng.IntN(7); {
	case kind == 0 && slot > 0:
		p.Steps[slot-1], p.Steps[slot] = p.Steps[slot], p.Steps[slot-1]
	case kind == 1:
		insertStep(p, slot, p.Steps[rng.IntN(len(p.Steps))])
	case kind == 2 && len(p.Entry) > 0:
		i := rng.IntN(len(p.Entry))
		p.Entry = slices.Delete(p.Entry, i, i+1)
	case len(p.Moves) == 0:
	case kind == 3:
		i := rng.IntN(len(p.Moves))
		p.Moves = slices.Delete(p.Moves, i, i+1)
	case kind == 4:
		m := p.Moves[rng.IntN(len(p.Moves))]
		m.Storage = graph.StorageID(rng.IntN(len(s.g.Storages)))
		p.Moves = append(p.Moves, m)
	case kind == 5:
		if m := &p.Moves[rng.IntN(len(p.Moves))]; m.Kind != plan.Drop {
			m.Delay = time.Duration(rng.IntN(50000))
		}
	default:
		m := &p.Moves[rng.IntN(len(p.Moves))]
		m.After = min(len(p.Steps)-1, max(-1, m.After+rng.IntN(7)-3))
	}
}
