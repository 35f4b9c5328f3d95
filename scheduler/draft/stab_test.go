package draft

import (
	"math/rand/v2"
	"testing"
)

func checkStabbing(t testing.TB, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 41))
	slots, keys := 1+rng.IntN(60), 1+rng.IntN(40)
	ranks := rng.Perm(keys)
	var all []interval
	gaps := map[int32][]interval{}
	for key := range int32(keys) {
		for range 1 + rng.IntN(2) {
			low := rng.IntN(slots)
			x := interval{low: int32(low), high: int32(low + rng.IntN(slots-low)), key: key, rank: int32(ranks[key])}
			all = append(all, x)
			gaps[key] = append(gaps[key], x)
		}
	}
	s := newStabbing(slots, keys, all)
	for range 60 {
		slot := rng.IntN(slots)
		want, found := int32(gone), int32(-1)
		for key, list := range gaps {
			for _, x := range list {
				if int(x.low) <= slot && slot <= int(x.high) && x.rank < want {
					want, found = x.rank, key
				}
			}
		}
		if got := s.best(slot); got != want {
			t.Fatalf("seed %d: at slot %d rank %d, want %d", seed, slot, got, want)
		}
		if found >= 0 && rng.IntN(2) == 0 {
			s.remove(found)
			delete(gaps, found)
		}
	}
}

// TestStabbing compares the index with a look at every interval.
func TestStabbing(t *testing.T) {
	for seed := range uint64(3000) {
		checkStabbing(t, seed)
	}
}

func FuzzStabbing(f *testing.F) {
	f.Fuzz(func(t *testing.T, seed uint64) { checkStabbing(t, seed) })
}
