package pool

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// slowShared compares every pair of buffers and returns those that share a slot and a byte.
func slowShared(buffers []Buffer, offsets []int64) (pairs [][2]int) {
	takes := func(i int) bool {
		return buffers[i].Size > 0 && offsets[i] >= 0 && buffers[i].Size <= math.MaxInt64-offsets[i]
	}
	for i := range buffers {
		for j := i + 1; j < len(buffers); j++ {
			b, c := &buffers[i], &buffers[j]
			if takes(i) && takes(j) && offsets[i] < offsets[j]+c.Size && offsets[j] < offsets[i]+b.Size &&
				excludes(b, c) {
				pairs = append(pairs, [2]int{i, j})
			}
		}
	}
	return pairs
}

// excludes reports whether the buffers may not share a byte: they share a slot, and are not views of the same bytes.
func excludes(b, c *Buffer) bool { return (b.Alias == 0 || b.Alias != c.Alias) && shareSlot(b, c) }

// shareSlot reports whether the buffers are resident at the same time.
func shareSlot(b, c *Buffer) bool {
	for _, s := range b.Spans {
		for _, t := range c.Spans {
			if s.Overlaps(t) {
				return true
			}
		}
	}
	return false
}

// compareShared holds the sweep against all pairs: the same verdict, only pairs that are, and all of them where there
// are no groups.
func compareShared(t *testing.T, name string, buffers []Buffer, offsets []int64) (right bool) {
	t.Helper()
	got, want := sharedBytes(buffers, offsets), slowShared(buffers, offsets)
	if (len(got) == 0) != (len(want) == 0) {
		t.Fatalf("%s: the sweep finds %v, all pairs are %v of %+v at %v", name, got, want, buffers, offsets)
	}
	for _, p := range got {
		if !slices.Contains(want, p) {
			t.Fatalf("%s: the sweep finds %v, all pairs are %v of %+v at %v", name, got, want, buffers, offsets)
		}
	}
	grouped := slices.ContainsFunc(buffers, func(b Buffer) bool { return b.Alias != 0 })
	if !grouped && !slices.Equal(got, want) {
		t.Fatalf("%s: the sweep finds %v, all pairs are %v of %+v at %v", name, got, want, buffers, offsets)
	}
	return len(want) == 0
}

// Right layouts, and some in which a few buffers have moved, groups apart from one another too.
func TestSweepAgainstAllPairs(t *testing.T) {
	var right, wrong int
	for seed := range uint64(3000) {
		rng := rand.New(rand.NewPCG(seed, 44))
		buffers := randomBuffers(rng)
		if seed%2 == 0 {
			buffers = pinned(rng, buffers)
		}
		l := packedBy(t, fmt.Sprintf("seed %d", seed), buffers, Options{Method: "size"})
		for range rng.IntN(4) {
			if len(buffers) > 0 {
				l.Offsets[rng.IntN(len(buffers))] = rng.Int64N(l.Height+3) - 1
			}
		}
		if compareShared(t, fmt.Sprintf("seed %d", seed), buffers, l.Offsets) {
			right++
		} else {
			wrong++
		}
	}
	if right < 700 || wrong < 700 {
		t.Errorf("%d layouts are right, %d are wrong", right, wrong)
	}
}

// A sweep ends where nearly all pairs are wrong, and looks at few cells where many views of the same bytes are right.
func TestSweepIsBounded(t *testing.T) {
	const n = 20_000
	same, views := make([]Buffer, n), make([]Buffer, n)
	for i := range n {
		same[i] = Buffer{Size: 8, Spans: []Span{{0, 4}}}
		views[i] = Buffer{Size: int64(1 + i%8), Spans: []Span{{i % 7, 10 + i%5}}, Alias: 1}
	}
	if pairs := sharedBytes(same, make([]int64, n)); len(pairs) != mostPairs {
		t.Errorf("%d pairs, want %d", len(pairs), mostPairs)
	}
	if err := Validate(views, Layout{Offsets: make([]int64, n), Height: 8}); err != nil {
		t.Error(err)
	}
	views = append(views, Buffer{Size: 1, Spans: []Span{{9, 10}}})
	offsets := make([]int64, n+1)
	offsets[n] = 7
	err := Validate(views, Layout{Offsets: offsets, Height: 8})
	if err == nil || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(),
		fmt.Sprintf("and %d at [7, 8) share a slot and a byte", n)) {
		t.Errorf("got %v, want one pair with buffer %d", err, n)
	}
}

// Whatever the offsets are, the sweep says what a look at all pairs says.
func FuzzValidate(f *testing.F) {
	f.Add([]byte{0, 0, 4, 0, 3, 0, 0, 3, 0, 8, 0, 9, 2, 5, 9, 4, 0, 0, 8, 0}, []byte{0, 4})
	f.Add([]byte{0, 0, 4, 0, 3, 0, 0, 0, 0, 5, 0, 9, 2, 5, 9, 4, 0, 0, 5, 0}, []byte{3, 3})
	f.Fuzz(func(t *testing.T, data, at []byte) {
		_, buffers := fuzzed(data)
		if check(buffers).err() != nil {
			return
		}
		offsets := make([]int64, len(buffers))
		for i := range offsets {
			if i < len(at) {
				offsets[i] = int64(at[i]) - 1
			}
		}
		compareShared(t, "fuzzed", buffers, offsets)
	})
}
