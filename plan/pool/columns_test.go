package pool

import (
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The drawing in columns.go.
func TestColumnsOfTheDrawing(t *testing.T) {
	var buffers []Buffer
	for _, s := range []Span{{0, 2}, {1, 4}, {3, 5}, {5, 6}} {
		buffers = append(buffers, Buffer{Size: 1, Spans: []Span{s}})
	}
	c := newColumns(buffers)
	var got []Span
	for _, b := range buffers {
		got = append(got, c.of(b.Spans[0]))
	}
	if diff := cmp.Diff([]Span{{0, 1}, {0, 2}, {1, 2}, {2, 3}}, got); diff != "" {
		t.Error(diff)
	}
}

// Two spans share a slot exactly when they share a column, and no column goes to waste.
func TestColumnsKeepWhatMeets(t *testing.T) {
	for seed := range uint64(3000) {
		buffers := randomBuffers(rand.New(rand.NewPCG(seed, 5)))
		c := newColumns(buffers)
		used := make([]bool, c.count())
		var spans []Span
		for _, b := range buffers {
			if b.Size > 0 {
				spans = append(spans, b.Spans...)
			}
		}
		for _, s := range spans {
			for i := c.of(s).From; i < c.of(s).To; i++ {
				used[i] = true
			}
			for _, u := range spans {
				if got, want := c.of(s).Overlaps(c.of(u)), s.Overlaps(u); got != want {
					t.Fatalf("seed %d: %v and %v share a slot: %v; their columns %v and %v: %v",
						seed, s, u, want, c.of(s), c.of(u), got)
				}
			}
		}
		for i, u := range used {
			if !u {
				t.Fatalf("seed %d: nothing is resident in column %d of %d", seed, i, len(used))
			}
		}
	}
}
