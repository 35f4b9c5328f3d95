package randtest

import (
	"testing"

	"tensile/device/cuda"
	"tensile/device/cuda/fakecuda"
	"tensile/internal/long"
)

// TestSameBitsOnCUDA is TestSameBits on the cuda device, over a driver that carries out what is on streams in another
// order for each seed, and objects to what nothing orders.
func TestSameBitsOnCUDA(t *testing.T) {
	seeds := long.Rounds(8, 100)
	for seed := range seeds {
		d, err := cuda.New(fakecuda.New(fakecuda.Options{Seed: seed}), cuda.Options{})
		if err != nil {
			t.Fatal(err)
		}
		checkSeed(t, d, seed, byte(seed%16))
		if err := d.Close(); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}
