package program_test

import (
	"math/rand/v2"
	"testing"

	"tensile/graph"
	"tensile/models/graphtest"
	"tensile/plan/compile"
	"tensile/plan/program"
)

// What a job needs from a group on with its copies in flight: at each group from there on, the pages of that group, of
// the one before it, which may not have ended, and of those with a copy that something from there on waits for.
func TestRestsInFlight(t *testing.T) {
	more := 0
	for seed := range uint64(200) {
		s := random(t, seed, graphtest.Options{Ops: 16})
		page, every := pagesFor(rand.New(rand.NewPCG(seed, 18)), s)
		d := compile.Divide(s.c, page, every)
		for _, section := range []*program.Section{&s.c.Body, &s.c.Snapshot} {
			groups := d.Of(s.c, section)
			got, single := program.RestsInFlight(s.c, section, groups), restsOf(groups)
			for g := range groups {
				want := 0
				for at := g; at < len(groups); at++ {
					pages := groups[at].Need
					for k := range at {
						if k == at-1 || waitsFor(s.c, section, groups[at].From, groups[k]) {
							pages = pages.Union(groups[k].Need)
						}
					}
					want = max(want, pages.Count())
				}
				if got[g] != want || want < single[g] {
					t.Fatalf("%s: from group %d on %d pages are needed, want %d, and %d by groups alone", s.name, g,
						got[g], want, single[g])
				}
				if want > single[g] {
					more++
				}
			}
		}
	}
	if more < 100 {
		t.Errorf("copies in flight need more pages in %d groups", more)
	}
}

// waitsFor reports whether a command from one on waits for a copy of a group.
func waitsFor(p *program.Program, s *program.Section, from int, of program.Group) bool {
	for i := from; i < len(s.Commands); i++ {
		for _, w := range s.Commands[i].Waits {
			if p.Streams[w.Stream] == program.Compute {
				continue
			}
			count := 0
			for k := range s.Commands[:of.To] {
				if s.Commands[k].Stream == w.Stream {
					if count++; count == w.Count && k >= of.From {
						return true
					}
				}
			}
		}
	}
	return false
}

// pagesFor returns a size of pages and a distance of cuts for a program.
func pagesFor(rng *rand.Rand, s subject) (page, every graph.Bytes) {
	arena := int(s.c.Arena)
	page = graph.Bytes([]int{1 + rng.IntN(arena/2), align, 1 + arena/(1+rng.IntN(60)), arena, 2 * arena}[rng.IntN(5)])
	every = graph.Bytes([]int{1 + rng.IntN(arena), 1 + arena/(1+rng.IntN(30)), 1, 3 * arena}[rng.IntN(4)])
	return page, every
}

// restsOf returns, per group, the most pages that it or one after it needs.
func restsOf(groups []program.Group) []int {
	rests := make([]int, len(groups))
	most := 0
	for i := len(groups) - 1; i >= 0; i-- {
		most = max(most, groups[i].Need.Count())
		rests[i] = most
	}
	return rests
}
