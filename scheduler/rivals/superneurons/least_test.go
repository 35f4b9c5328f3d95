package superneurons

import (
	"testing"
	"time"

	"tensile/graph"
	_ "tensile/internal/long" // the flag -long
	"tensile/scheduler"
)

// TestLeast: an op that has to make do takes the variant of least scratch, of these the fastest, of these the first.
func TestLeast(t *testing.T) {
	of := func(scratch graph.Bytes, takes int) scheduler.Variant {
		return scheduler.Variant{Scratch: scratch, Latency: time.Duration(takes)}
	}
	j := &scheduler.Job{Latency: make([]time.Duration, 3), Variants: [][]scheduler.Variant{
		{of(5, 3), of(5, 2), of(7, 1), of(5, 2)},
		{of(7, 1), of(5, 3), of(6, 1)},
		{of(0, 9)},
	}}
	m := machine{job: j}
	for op, want := range []int{1, 1, 0} {
		if got := m.leastScratch(graph.OpID(op)); got != want {
			t.Errorf("op %d takes variant %d, want %d", op, got, want)
		}
	}
}
