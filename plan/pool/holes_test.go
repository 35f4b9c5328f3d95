package pool

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Enough holes come and go to split chunks and to empty them.
func TestHoles(t *testing.T) {
	for seed := range uint64(8) {
		rng := rand.New(rand.NewPCG(seed, 14))
		var s holes
		var want []hole
		for step := range 6000 {
			grow := 9 - 8*(step/3000) // of ten steps
			if rng.IntN(10) >= grow && len(want) > 0 {
				i := rng.IntN(len(want))
				s.remove(want[i])
				want = slices.Delete(want, i, i+1)
			} else {
				h := hole{1 + rng.Int64N(50), int64(step)}
				s.add(h)
				i, _ := slices.BinarySearchFunc(want, h, hole.compare)
				want = slices.Insert(want, i, h)
			}
			if step%500 > 0 {
				continue
			}
			size := rng.Int64N(52)
			rest := want[slices.IndexFunc(append(want, hole{size: size}), func(h hole) bool { return h.size >= size }):]
			got := slices.AppendSeq([]hole{}, s.from(size))
			if diff := cmp.Diff(rest, got, cmp.AllowUnexported(hole{})); diff != "" {
				t.Fatalf("seed %d, step %d: from %d (-want +got):\n%s", seed, step, size, diff)
			}
			if len(want) > 0 && s.largest() != want[len(want)-1].size {
				t.Fatalf("seed %d, step %d: largest %d", seed, step, s.largest())
			}
			for _, chunk := range s.chunks {
				if len(chunk) == 0 || len(chunk) > chunkHoles {
					t.Fatalf("seed %d, step %d: a chunk of %d", seed, step, len(chunk))
				}
			}
		}
		for _, h := range want {
			s.remove(h)
		}
		if len(s.chunks) > 0 || s.largest() != 0 {
			t.Fatalf("seed %d: left are %v", seed, s.chunks)
		}
	}
}
