package pool

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// fewBuffers are so few and small that all layouts can be tried.
func fewBuffers(rng *rand.Rand) []Buffer {
	slots, largest := 2+rng.IntN(8), 1+rng.Int64N(9)
	aligns := [][]int64{{1}, {4}, {1, 2, 4}, {0, 8}}[rng.IntN(4)]
	buffers := make([]Buffer, 2+rng.IntN(5))
	for i := range buffers {
		b := Buffer{Size: 1 + rng.Int64N(largest), Align: aligns[rng.IntN(len(aligns))]}
		for from := rng.IntN(slots); from < slots && (len(b.Spans) == 0 || rng.IntN(3) == 0); {
			to := from + 1 + rng.IntN(slots-from)
			b.Spans = append(b.Spans, Span{from, to})
			from = to + rng.IntN(3)
		}
		if rng.IntN(6) == 0 {
			b.Spans = []Span{{0, slots}}
		}
		buffers[i] = b
	}
	return buffers
}

// slowOptimum is the least height of all layouts. What is fixed stands; the others are placed one after another, each
// as low as it can be, in every order. That is enough: in the order in which they stand in a best layout, none can end
// up higher than it stands there. A group is one thing with the outlines of its members.
func slowOptimum(buffers []Buffer) int64 {
	var things [][]int // buffers with one offset
	for i, b := range buffers {
		same := func(t []int) bool { return b.Alias != 0 && buffers[t[0]].Alias == b.Alias }
		if at := slices.IndexFunc(things, same); at >= 0 {
			things[at] = append(things[at], i)
		} else {
			things = append(things, []int{i})
		}
	}
	offsets := make([]int64, len(buffers))
	var done []int // buffers
	var fixed int64
	things = slices.DeleteFunc(things, func(t []int) bool {
		at := slices.IndexFunc(t, func(i int) bool { return buffers[i].Fixed })
		if at < 0 {
			return false
		}
		for _, i := range t {
			if offsets[i] = buffers[t[at]].At; buffers[i].Size > 0 {
				fixed = max(fixed, offsets[i]+buffers[i].Size)
			}
			done = append(done, i)
		}
		return true
	})
	best := int64(math.MaxInt64)
	var descend func(left [][]int, height int64)
	descend = func(left [][]int, height int64) {
		if len(left) == 0 {
			best = min(best, height)
		}
		for k, thing := range left {
			at, end := slowLowest(buffers, offsets, done, thing)
			if max(height, end) >= best {
				continue
			}
			for _, i := range thing {
				offsets[i] = at
			}
			done = append(done, thing...)
			descend(slices.Concat(left[:k], left[k+1:]), max(height, end))
			done = done[:len(done)-len(thing)]
		}
	}
	descend(things, fixed)
	return best
}

// slowLowest tries every multiple of the alignment, from 0 on.
func slowLowest(buffers []Buffer, offsets []int64, done, thing []int) (at, end int64) {
	align := int64(1)
	for _, i := range thing {
		align = max(align, buffers[i].Align)
	}
	meets := func(i int) bool {
		b := &buffers[i]
		return slices.ContainsFunc(done, func(j int) bool {
			c := &buffers[j]
			return b.Size > 0 && c.Size > 0 && at < offsets[j]+c.Size && offsets[j] < at+b.Size && excludes(b, c)
		})
	}
	for slices.ContainsFunc(thing, meets) {
		at += align
	}
	for _, i := range thing {
		if buffers[i].Size > 0 {
			end = max(end, at+buffers[i].Size)
		}
	}
	return at, end
}

// outlined reports whether a group is smaller at some slots than at others. The methods pack it as if it were not.
func outlined(buffers []Buffer) bool {
	largest := make(map[int]int64)
	for _, b := range buffers {
		largest[b.Alias] = max(largest[b.Alias], b.Size)
	}
	return slices.ContainsFunc(buffers, func(b Buffer) bool { return b.Alias != 0 && b.Size < largest[b.Alias] })
}

// No layout is below the optimum, no lower bound above it, and what is said to be optimal is. With so few buffers a
// search finds the optimum.
func TestPackAgainstTheOptimum(t *testing.T) {
	const seeds = 1500
	missed := make(map[string]int)
	for seed := range uint64(seeds) {
		rng := rand.New(rand.NewPCG(seed, 30))
		buffers := fewBuffers(rng)
		if seed%3 == 0 {
			buffers = pinned(rng, buffers)
		}
		optimum := slowOptimum(buffers)
		for _, method := range Methods() {
			if method == "online" && slices.ContainsFunc(buffers, func(b Buffer) bool { return b.Fixed }) {
				continue
			}
			l := packedBy(t, fmt.Sprintf("seed %d: %s", seed, method), buffers, Options{Method: method})
			if l.Height < optimum || l.LowerBound > optimum || l.Optimal != (l.Height == l.LowerBound) {
				t.Errorf("seed %d: %s: height %d, lower bound %d, optimal %v; the optimum is %d of %+v",
					seed, method, l.Height, l.LowerBound, l.Optimal, optimum, buffers)
			}
			if l.Height == optimum {
				continue
			}
			missed[method]++
			if method == "search" && !outlined(buffers) {
				t.Errorf("seed %d: %s: height %d, lower bound %d; the optimum is %d of %+v",
					seed, method, l.Height, l.LowerBound, optimum, buffers)
			}
		}
	}
	t.Logf("of %d not at the optimum: %v", seeds, missed)
}
