package pool

import (
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestByteSet(t *testing.T) {
	const bytes = 120
	for seed := range uint64(500) {
		rng := rand.New(rand.NewPCG(seed, 6))
		var set byteSet
		var taken [bytes]bool
		for range 1 + rng.IntN(60) {
			lo := rng.IntN(bytes)
			hi := lo + 1 + rng.IntN(min(4, bytes-lo))
			set.add(byteRange{int64(lo), int64(hi)})
			for i := lo; i < hi; i++ {
				taken[i] = true
			}
		}
		var want byteSet
		for i, is := range taken {
			switch {
			case is && i > 0 && taken[i-1]:
				want[len(want)-1].hi++
			case is:
				want = append(want, byteRange{int64(i), int64(i) + 1})
			}
		}
		if diff := cmp.Diff(want, set, cmp.AllowUnexported(byteRange{})); diff != "" {
			t.Fatalf("seed %d: %s", seed, diff)
		}
		for x := range int64(bytes) {
			var rest byteSet
			for _, r := range want {
				if r.hi > x {
					rest = append(rest, r)
				}
			}
			if got := set.after(x); len(got) != len(rest) || len(got) > 0 && got[0] != rest[0] {
				t.Fatalf("seed %d: %v after %d = %v, want %v", seed, set, x, got, rest)
			}
		}
	}
}
