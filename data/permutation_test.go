package data

import (
	"math"
	"testing"
)

func TestPermutationVisitsEveryPointOnce(t *testing.T) {
	for n := 1; n <= 400; n++ {
		for key := range uint64(5) {
			p := newPermutation(n, mix(key))
			seen := make([]bool, n)
			for i := range n {
				to := p.image(i)
				if to < 0 || to >= n || seen[to] {
					t.Fatalf("n %d key %d: %d goes to %d, which is out of range or taken", n, key, i, to)
				}
				seen[to] = true
			}
		}
	}
}

func TestPermutationOfAWholeEpoch(t *testing.T) {
	const n = 50000
	seen := make([]bool, n)
	p := newPermutation(n, 7)
	for i := range n {
		seen[p.image(i)] = true
	}
	for i, ok := range seen {
		if !ok {
			t.Fatalf("nothing goes to %d of %d", i, n)
		}
	}
}

// Over many keys every point goes everywhere equally often: chi squared of each point's destinations stays within what
// fair dice give. The sets are small, because there a weak network shows.
func TestPermutationIsUniform(t *testing.T) {
	const keys = 4000
	for _, n := range []int{2, 3, 5, 10, 16, 17, 50} {
		counts := make([]int, n*n)
		for key := range keys {
			p := newPermutation(n, derive(1, key))
			for i := range n {
				counts[i*n+p.image(i)]++
			}
		}
		for i := range n {
			expected, chi := float64(keys)/float64(n), 0.0
			for to := range n {
				d := float64(counts[i*n+to]) - expected
				chi += d * d / expected
			}
			freedom := float64(n - 1)
			if bound := freedom + 8*math.Sqrt(2*freedom) + 24; chi > bound {
				t.Errorf("n %d: point %d has chi squared %.1f over %d keys, want below %.1f", n, i, chi, keys, bound)
			}
		}
	}
}

// Neighbours do not stay neighbours: a shuffled set has about one pair of the kind i -> j, i+1 -> j+1.
func TestPermutationSeparatesNeighbours(t *testing.T) {
	for key := range uint64(20) {
		p := newPermutation(4096, mix(key))
		pairs := 0
		for i := range 4095 {
			if p.image(i+1) == p.image(i)+1 {
				pairs++
			}
		}
		if pairs > 10 {
			t.Errorf("key %d: %d neighbours stay together, want about 1", key, pairs)
		}
	}
}
