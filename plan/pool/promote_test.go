package pool

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Promotion is sound either way and pays for itself where simple orders leave something to gain.
func TestPromotePays(t *testing.T) {
	var with, without float64
	const seeds = 20
	for seed := range uint64(seeds) {
		buffers, perfect := jigsaw(120, seed)
		plain := packedBy(t, "jigsaw", buffers, Options{Method: "greedy"})
		mended := packedBy(t, "jigsaw", buffers, Options{Method: "promote"})
		if mended.LowerBound != perfect || mended.Height > plain.Height {
			t.Errorf("seed %d: perfect %d, lower bound %d, height %d, without promotion %d",
				seed, perfect, mended.LowerBound, mended.Height, plain.Height)
		}
		without += float64(plain.Height) / float64(perfect) / seeds
		with += float64(mended.Height) / float64(perfect) / seeds
	}
	t.Logf("mean height / perfect: %.4f without promotion, %.4f with", without, with)
	if with > without-0.02 {
		t.Errorf("mean height / perfect: %.4f without promotion, %.4f with", without, with)
	}
}

func TestForward(t *testing.T) {
	order := []int{0, 1, 2, 3, 4}
	forward(order, 3, 1)
	if diff := cmp.Diff([]int{0, 3, 1, 2, 4}, order); diff != "" {
		t.Error(diff)
	}
}
