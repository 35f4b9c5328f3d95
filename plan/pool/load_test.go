package pool

import (
	"math"
	"math/rand/v2"
	"testing"
)

// slowLoad adds up each slot.
func slowLoad(buffers []Buffer) int64 {
	loads := map[int]int64{}
	var largest int64
	for _, b := range buffers {
		for _, s := range b.Spans {
			for slot := s.From; slot < s.To; slot++ {
				loads[slot] += b.Size
				largest = max(largest, loads[slot])
			}
		}
	}
	return largest
}

func TestLoad(t *testing.T) {
	for seed := range uint64(3000) {
		buffers := randomBuffers(rand.New(rand.NewPCG(seed, 3)))
		if got, want := Load(buffers), slowLoad(buffers); got != want {
			t.Fatalf("seed %d: Load = %d, want %d", seed, got, want)
		}
	}
}

func TestLoadSaturates(t *testing.T) {
	half := Buffer{Size: 1 << 62, Spans: []Span{{0, 1}}}
	if got := Load([]Buffer{half, half, half}); got != math.MaxInt64 {
		t.Errorf("Load = %d, want the largest int64", got)
	}
}

func TestPeaks(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 4))
	for size := 1; size < 40; size++ {
		loads := make([]int64, size)
		for i := range loads {
			loads[i] = rng.Int64N(50)
		}
		p := newPeaks(loads)
		for from := range size {
			largest := int64(0)
			for to := from + 1; to <= size; to++ {
				largest = max(largest, loads[to-1])
				if got := p.of(Span{from, to}); got != largest {
					t.Fatalf("largest of %v in [%d, %d) = %d, want %d", loads, from, to, got, largest)
				}
			}
		}
	}
}
