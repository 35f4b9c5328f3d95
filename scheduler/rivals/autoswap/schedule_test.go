package autoswap

import (
	"testing"
	"time"

	"tensile/graph"
)

const ms = time.Millisecond

// TestStreams has copies that one stream carries over the end of an iteration, worked out by hand. Slots take 1 ms.
func TestStreams(t *testing.T) {
	four := []time.Duration{ms, ms, ms, ms}
	for _, c := range []struct {
		name     string
		it       Iteration
		drop, in []int // per pause
	}{
		// 0 goes out from 4 to 7 ms, in the steady state from 0 to 3 as well: 1 is out at 4 and not at 2.
		{"outs", Iteration{Took: four, Pauses: []Pause{
			{Bytes: 1, From: 3, To: 7, Send: 3 * ms},
			{Bytes: 1, From: 0, To: 3, Send: ms},
		}}, []int{6, 2}, []int{6, 2}},
		// 0 comes in for slot 0, and has to begin at 2 ms, where slot 1 has ended: 1 comes in from 1 to 2 ms, after
		// slot 0, and not from 2 to 3 after slot 1.
		{"ins", Iteration{Took: four, Pauses: []Pause{
			{Bytes: 1, From: 1, To: 4, Fetch: 2 * ms},
			{Bytes: 1, From: 0, To: 3, Fetch: ms},
		}}, []int{1, 0}, []int{1, 0}},
		// The batch comes in until 1 ms, when slot 0 begins. 0 would begin before that for slot 2, so it comes in
		// before the iteration, from 2.5 to 5 ms: 1 comes in before that, from 2 ms on, when slot 0 has ended.
		{"arrivals", Iteration{Took: four, Arrivals: []Arrival{{0, ms}}, Pauses: []Pause{
			{Bytes: 1, From: 0, To: 2, Fetch: 5 * ms / 2},
			{Bytes: 1, From: 0, To: 3, Fetch: ms / 2},
		}}, []int{0, 0}, []int{0, 0}},
	} {
		it := c.it
		it.Load = []graph.Bytes{9, 9, 9, 9}
		s := it.prepare().schedule([]bool{true, true})
		for _, x := range s.swaps {
			if x.Drop != c.drop[x.Pause] || x.In != c.in[x.Pause] {
				t.Errorf("%s: %d leaves after slot %d and comes in after %d, want %d and %d", c.name, x.Pause, x.Drop,
					x.In, c.drop[x.Pause], c.in[x.Pause])
			}
		}
	}
}
