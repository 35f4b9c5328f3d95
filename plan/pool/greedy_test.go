package pool

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// slowPlace is the obvious placement, in the caller's terms: a buffer can stand at 0 or just above another; of the
// places where it fits it takes the lowest, or for best the one with the least room up to the next buffer.
func slowPlace(buffers []Buffer, order []int, best bool) []int64 {
	offsets := make([]int64, len(buffers))
	var done []int // placed, and with bytes
	for _, n := range order {
		b := buffers[n]
		var meets []int
		places := []int64{0}
		for _, m := range done {
			if shareSlot(&b, &buffers[m]) {
				meets = append(meets, m)
				end, align := offsets[m]+buffers[m].Size, max(b.Align, 1)
				places = append(places, (end+align-1)/align*align)
			}
		}
		slices.Sort(places)
		chosen, room := int64(-1), int64(math.MaxInt64)
		for _, at := range places {
			above := int64(math.MaxInt64) // the room up to the next buffer
			for _, m := range meets {
				if offsets[m] >= at {
					above = min(above, offsets[m]-at)
				} else if offsets[m]+buffers[m].Size > at {
					above = 0
				}
			}
			if above >= b.Size && (chosen < 0 || best && above < room) {
				chosen, room = at, above
			}
		}
		offsets[n] = chosen
		done = append(done, n)
	}
	return offsets
}

// Both ways to keep what is placed choose the same offsets as the obvious placement, in any order.
func TestPlaceAgainstTheObvious(t *testing.T) {
	for seed := range uint64(2000) {
		rng := rand.New(rand.NewPCG(seed, 7))
		buffers := randomBuffers(rng)
		p := newProblem(buffers)
		order := rng.Perm(len(p.items))
		var numbers []int
		for _, n := range order {
			numbers = append(numbers, p.items[n].buffers[0])
		}
		for i, fit := range fits {
			want := slowPlace(buffers, numbers, i == 1)
			for name, placed := range map[string]placed{"flat": &flat{}, "index": newIndex(p.columns)} {
				g := newGreedy(p)
				g.placed = placed
				for range 2 { // the second time on cleared memory
					_, stopped := g.place(run{order: order, fit: fit, limit: math.MaxInt64, steps: math.MaxInt})
					got := make([]int64, len(buffers))
					for n, it := range p.items {
						got[it.buffers[0]] = g.offsets[n]
					}
					if diff := cmp.Diff(want, got); diff != "" || stopped >= 0 {
						t.Fatalf("seed %d: %s, fit %d, stopped at %d: %s", seed, name, i, stopped, diff)
					}
				}
			}
		}
	}
}

// The same for many buffers, where sets are long enough to be searched by strides.
func TestPlaceManyAgainstTheObvious(t *testing.T) {
	for _, buffers := range [][]Buffer{trainingStep(500, 1), scattered(500, 1)} {
		p := newProblem(buffers)
		for _, o := range []order{sizeOrder, startOrder} {
			order := o.of(p.items)
			for i, fit := range fits {
				want := slowPlace(buffers, order, i == 1)
				for name, placed := range map[string]placed{"flat": &flat{}, "index": newIndex(p.columns)} {
					g := newGreedy(p)
					g.placed = placed
					g.place(run{order: order, fit: fit, limit: math.MaxInt64, steps: math.MaxInt})
					if diff := cmp.Diff(want, g.offsets); diff != "" {
						t.Errorf("%s, order %s, fit %d: %s", name, o.name, i, diff)
					}
				}
			}
		}
	}
}

// A run stops at the first item that ends above the limit.
func TestPlaceStopsAtTheLimit(t *testing.T) {
	one := []Span{{0, 1}}
	g := newGreedy(newProblem([]Buffer{{Size: 4, Spans: one}, {Size: 3, Spans: one}, {Size: 2, Spans: one}}))
	for limit, want := range map[int64]int{3: 0, 4: 1, 7: 2, 8: 2, 9: -1} {
		if _, stopped := g.place(run{order: []int{0, 1, 2}, fit: firstFit, limit: limit,
			steps: math.MaxInt}); stopped != want {
			t.Errorf("limit %d: stopped at %d, want %d", limit, stopped, want)
		}
	}
}

// When a run is out of steps it looks at the uppermost gaps only: another layout, right and not much higher.
func TestPlaceOutOfSteps(t *testing.T) {
	buffers := scattered(1000, 2)
	p := newProblem(buffers)
	for name, placed := range map[string]placed{"flat": &flat{}, "index": newIndex(p.columns)} {
		for i, fit := range fits {
			g := newGreedy(p)
			g.placed = placed
			full, _ := g.place(run{order: sizeOrder.of(p.items), fit: fit, limit: math.MaxInt64, steps: math.MaxInt})
			all := slices.Clone(g.offsets)
			height, _ := g.place(run{order: sizeOrder.of(p.items), fit: fit, limit: math.MaxInt64})
			l := Layout{Offsets: g.offsets, Height: height}
			if err := Validate(buffers, l); err != nil {
				t.Errorf("%s, fit %d: %v", name, i, err)
			}
			if slices.Equal(all, l.Offsets) {
				t.Errorf("%s, fit %d: the same layout as with all steps", name, i)
			}
			if float64(height) > 1.2*float64(full) {
				t.Errorf("%s, fit %d: height %d, with all steps %d", name, i, height, full)
			}
		}
	}
}
