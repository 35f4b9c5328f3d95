package kernel

import (
	"math"
	"testing"

	"tensile/graph"
)

func mask(t *testing.T, j job, attrs graph.Attrs, n int) []float32 {
	ones := tensor[float32]{graph.Shape{n}, make([]float32, n)}
	fill(ones.data, 1)
	return apply(t, j, graph.Dropout, attrs, ones)[0].data
}

// The share of kept elements is right within five standard deviations, and what is kept is scaled.
func TestDropoutRate(t *testing.T) {
	const n = 1 << 16
	for _, rate := range []float64{0, 0.1, 0.5, 0.9} {
		kept, scaled := 0, float32(1/(1-rate))
		for _, v := range mask(t, job{seed: 1}, graph.Attrs{Rate: rate, Key: 2}, n) {
			switch v {
			case 0:
			case scaled:
				kept++
			default:
				t.Fatalf("rate %v: 1 became %v, want 0 or %v", rate, v, scaled)
			}
		}
		if off := math.Abs(float64(kept) - n*(1-rate)); off > 5*math.Sqrt(n*rate*(1-rate)) {
			t.Errorf("rate %v: %d of %d elements kept", rate, kept, n)
		}
	}
}

// Seed, iteration, key and element each change the mask: masks agree on about half of the elements at rate 0.5, and so
// do neighbours within one. Nothing else does: the same call makes it again.
func TestDropoutMasksDiffer(t *testing.T) {
	const n = 1 << 14
	attrs := graph.Attrs{Rate: 0.5, Key: 3}
	base := mask(t, job{seed: 1, iteration: 2}, attrs, n)
	other := attrs
	other.Key = 4
	for name, m := range map[string][]float32{
		"seed":      mask(t, job{seed: 2, iteration: 2}, attrs, n),
		"iteration": mask(t, job{seed: 1, iteration: 3}, attrs, n),
		"key":       mask(t, job{seed: 1, iteration: 2}, other, n),
		"element":   append(base[1:], base[0]),
	} {
		same := 0
		for i, v := range m {
			if v == base[i] {
				same++
			}
		}
		if off := math.Abs(float64(same) - n/2); off > 5*math.Sqrt(n)/2 {
			t.Errorf("with another %s the mask agrees on %d of %d elements, want about half", name, same, n)
		}
	}
	if !sameBits(base, mask(t, job{seed: 1, iteration: 2}, attrs, n)) {
		t.Error("the same call makes another mask")
	}
	if !sameBits(base[:100], mask(t, job{seed: 1, iteration: 2}, attrs, 100)) {
		t.Error("an element's fate depends on how many there are")
	}
}
