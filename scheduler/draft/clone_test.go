package draft

import (
	"math/rand/v2"
	"slices"
	"testing"

	"tensile/graph"
)

// TestClone changes a clone in every way and shows that the original goes on as if there had been none, and that the
// clone can go on in the same way.
func TestClone(t *testing.T) {
	swapped, recomputed := 0, 0
	for seed := range uint64(400) {
		rng := rand.New(rand.NewPCG(seed, 69))
		s, style := randomJobs(rng, 1)
		share := graph.Bytes(70 + rng.IntN(30))
		begin := func() *Draft {
			d := s.Drafts(EarlyUpdates, style)[0]
			SwapFreely([]*Draft{d}, SumOfPeaks([]*Draft{d})*share/100)
			return d
		}
		finish := func(d *Draft) string {
			SwapFreely([]*Draft{d}, 0)
			_, peak := d.Peak()
			d.relax(peak)
			return d.Plan("tensile").Text(d.g)
		}
		want := finish(begin())
		original := begin()
		before := original.Swaps()
		clones := []*Draft{original.Clone(), original.Clone(), original.Clone()}
		if got := finish(clones[0]); got != want {
			t.Fatalf("seed %d: a clone goes on to\n%sthe original to\n%s", seed, got, want)
		}
		swapped += clones[0].Swaps() - before
		possible := func(x *Gap) bool { _, ok := clones[1].RecomputeAt(x); return ok }
		if i := slices.IndexFunc(clones[1].gaps, possible); i >= 0 {
			r, _ := clones[1].RecomputeAt(clones[1].gaps[i])
			clones[1].Apply(r)
			recomputed++
		}
		if got := finish(original); got != want {
			t.Fatalf("seed %d: after its clones were changed, the original goes on to\n%snot to\n%s", seed, got, want)
		}
		if got := finish(clones[2]); got != want {
			t.Fatalf("seed %d: after the original was changed, a clone goes on to\n%snot to\n%s", seed, got, want)
		}
	}
	if t.Logf("%d storages swapped in clones, %d clones with a recomputation", swapped, recomputed); swapped < 500 ||
		recomputed < 50 {
		t.Errorf("%d storages swapped in clones, %d clones with a recomputation", swapped, recomputed)
	}
}
