package pool

import (
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// view is all of a skyline that decides what it does next, without what is only kept for speed.
type view struct {
	Levels, Floors, At       []int64
	Placed                   []int32
	Top, Total               []int64
	Hash                     []uint64
	Live, Lowest, Cross      []int32
	Saved, Raised, PlacedLen int
}

func viewOf(s *skyline) view {
	v := view{Levels: slices.Clone(s.levels), Floors: slices.Clone(s.floors), Placed: append([]int32{}, s.placed...)}
	for _, n := range s.placed {
		v.At = append(v.At, s.blocks[n].at)
	}
	for i := range s.columns {
		c := &s.columns[i]
		v.Top, v.Total, v.Hash = append(v.Top, c.top), append(v.Total, c.total), append(v.Hash, c.hash)
		v.Live, v.Lowest, v.Cross = append(v.Live, c.live), append(v.Lowest, c.lowest), append(v.Cross, c.cross)
	}
	v.Saved, v.Raised, v.PlacedLen = len(s.saved), len(s.raised), len(s.placed)
	return v
}

// slowView works the same out of nothing but the blocks, which of them are placed and where, and the levels of the
// others. first is the skyline when it was new.
func slowView(s *skyline, first view, strip int64) view {
	v := view{Levels: s.levels, Placed: append([]int32{}, s.placed...)}
	for _, n := range s.placed {
		v.At = append(v.At, s.blocks[n].at)
	}
	for n := range s.columns {
		top, total, hash, live, lowest, cross := strip, first.Total[n], uint64(0), int32(0), int32(0), int32(0)
		floor := int64(math.MaxInt64)
		for i := range s.blocks {
			b := &s.blocks[i]
			here, done := slices.Contains(b.columns, int32(n)), slices.Contains(s.placed, int32(i))
			switch {
			case done && here:
				top, total = max(top, b.at+b.room), total-b.room
			case done:
			case int(b.columns[0]) <= n && n < int(b.columns[len(b.columns)-1]):
				cross++
			}
			if here && !done {
				live++
				hash ^= blockHash(int32(i))
				if s.levels[i] < floor {
					floor, lowest = s.levels[i], 0
				}
				if s.levels[i] == floor {
					lowest++
				}
			}
		}
		if live == 0 {
			floor = top
		}
		v.Floors, v.Top, v.Total = append(v.Floors, floor), append(v.Top, top), append(v.Total, total)
		v.Hash, v.Live = append(v.Hash, hash), append(v.Live, live)
		v.Lowest, v.Cross = append(v.Lowest, lowest), append(v.Cross, cross)
	}
	v.Saved, v.Raised, v.PlacedLen = len(s.saved), len(s.raised), len(s.placed)
	return v
}

// skylineStep is a place, or a shut where there is a level.
type skylineStep struct {
	number int32
	level  int64
}

func (s *skyline) do(step skylineStep) bool {
	if step.level > 0 {
		return s.shut(step.number, step.level)
	}
	return s.place(step.number)
}

// randomStep chooses a block that is to come, or a column with such a block and a level above its floor.
func (s *skyline) randomStep(rng *rand.Rand) (step skylineStep, ok bool) {
	var blocks, columns []int32
	for i, level := range s.levels {
		if level != settled {
			blocks = append(blocks, int32(i))
		}
	}
	for n := range s.columns {
		if s.columns[n].live > 0 {
			columns = append(columns, int32(n))
		}
	}
	if len(blocks) == 0 {
		return step, false
	}
	if rng.IntN(3) > 0 {
		return skylineStep{number: blocks[rng.IntN(len(blocks))]}, true
	}
	n := columns[rng.IntN(len(columns))]
	if level := s.next(n); level != math.MaxInt64 && rng.IntN(2) == 0 {
		return skylineStep{n, level}, true
	}
	return skylineStep{n, s.floors[n] + 1 + rng.Int64N(9)}, true
}

// A walk of random places and shuts goes back now and then: to the very state it was in, which is also the one that the
// steps up to there lead to from nothing, and the one that follows from the levels.
func TestSkylineGoesBack(t *testing.T) {
	var steps, failures, backs int
	for seed := range uint64(250) {
		rng := rand.New(rand.NewPCG(seed, 32))
		buffers := randomBuffers(rng)
		if seed%2 == 0 {
			buffers = pinned(rng, buffers)
		}
		p := newProblem(buffers)
		items := aboveBottom(p)
		if len(items) == 0 {
			continue
		}
		limit := p.load + rng.Int64N(p.load+1)
		start := func() *skyline {
			s := newSkyline(p, items)
			s.limit = limit
			return s
		}
		s := start()
		first := viewOf(s)
		var path []skylineStep
		marks, views := []mark{s.mark()}, []view{first}
		for range 60 {
			step, any := s.randomStep(rng)
			back := !any || rng.IntN(8) == 0
			if any {
				steps++
				if s.do(step) {
					if path = append(path, step); !back {
						s.checkState(t, seed, first, p.strip)
					}
					marks, views = append(marks, s.mark()), append(views, viewOf(s))
				} else {
					failures++
					s.rewind(marks[len(path)])
				}
			}
			if back {
				backs++
				to := rng.IntN(len(marks))
				s.rewind(marks[to])
				path, marks, views = path[:to], marks[:to+1], views[:to+1]
			}
			if want, got := views[len(path)], viewOf(s); !reflect.DeepEqual(want, got) {
				t.Fatalf("seed %d: after %v, gone back to (-want +got):\n%s", seed, path, cmp.Diff(want, got))
			}
		}
		replayed := start()
		for _, step := range path {
			if !replayed.do(step) {
				t.Fatalf("seed %d: %v fails the second time", seed, step)
			}
		}
		if diff := cmp.Diff(viewOf(s), viewOf(replayed)); diff != "" {
			t.Fatalf("seed %d: %v done again (-want +got):\n%s", seed, path, diff)
		}
	}
	if t.Logf("%d steps, %d led nowhere, went back %d times", steps, failures, backs); failures < 100 ||
		steps < 2*failures {
		t.Errorf("%d of %d steps led nowhere", failures, steps)
	}
}

// checkState compares a skyline that holds with what is obvious.
func (s *skyline) checkState(t *testing.T, seed uint64, first view, strip int64) {
	t.Helper()
	if want, got := slowView(s, first, strip), viewOf(s); !reflect.DeepEqual(want, got) {
		t.Fatalf("seed %d: after %v (-want +got):\n%s", seed, s.placed, cmp.Diff(want, got))
	}
	roof := alignUp(s.limit, s.unit)
	for i := range s.blocks {
		b := &s.blocks[i]
		if s.levels[i] == settled {
			continue
		}
		level := int64(0) // hash relies on levels being no more than what the floors make them
		for _, n := range b.columns {
			level = max(level, s.floors[n])
		}
		if level = alignUp(level, b.align); !b.fixed && level != s.levels[i] || level > s.levels[i] || s.levels[i]+
			b.size > s.limit {
			t.Fatalf("seed %d: block %d is at level %d, its floors are below %d, the limit is %d", seed, i, s.levels[i],
				level, s.limit)
		}
		sinks := !b.fixed && s.levels[i]-b.align >= strip
		for _, o := range s.placed {
			if slices.Contains(b.over, o) && s.levels[i]-b.align < s.blocks[o].at+s.blocks[o].room {
				sinks = false
			}
		}
		if s.rests(int32(i)) == sinks {
			t.Fatalf("seed %d: block %d at level %d rests: %v", seed, i, s.levels[i], !sinks)
		}
	}
	for n := range s.columns {
		if s.columns[n].live == 0 {
			continue
		}
		if s.floors[n] != first.Floors[n] && s.columns[n].total > roof-s.floors[n] {
			t.Fatalf("seed %d: column %d has %d bytes for %d", seed, n, roof-s.floors[n], s.columns[n].total)
		}
		var want []int32
		flush := true
		for i := range s.blocks {
			if b := &s.blocks[i]; s.levels[i] == s.floors[n] && slices.Contains(b.columns, int32(n)) {
				want = append(want, int32(i))
				flush = flush && !slices.ContainsFunc(b.columns, func(c int32) bool {
					return s.floors[c] != s.floors[n]
				})
			}
		}
		if got := slices.Sorted(slices.Values(s.candidates(int32(n), nil))); !slices.Equal(want, got) {
			t.Fatalf("seed %d: candidates of column %d: %v, want %v", seed, n, got, want)
		}
		for range 2 { // the second time it may go by its guess
			if got := s.flush(int32(n)); got != flush {
				t.Fatalf("seed %d: column %d is flush: %v, want %v", seed, n, got, flush)
			}
		}
	}
}

// A new skyline holds what the problem holds: each column has at least the bytes of its items, those left out included.
func TestNewSkyline(t *testing.T) {
	for seed := range uint64(1000) {
		rng := rand.New(rand.NewPCG(seed, 33))
		p := newProblem(pinned(rng, randomBuffers(rng)))
		var items []int
		for _, i := range aboveBottom(p) {
			if rng.IntN(3) > 0 {
				items = append(items, i)
			}
		}
		if len(items) == 0 {
			continue
		}
		s := newSkyline(p, items)
		for i := range s.blocks {
			b, it := &s.blocks[i], &p.items[items[i]]
			if int(b.item) != items[i] || b.size != it.size || b.room != it.room || b.align != it.align ||
				b.fixed != it.fixed {
				t.Fatalf("seed %d: block %+v of item %d, %+v", seed, b, items[i], it)
			}
			for j := range s.blocks {
				o := &p.items[items[j]]
				meets := j != i && it.meets(o)
				shares := slices.ContainsFunc(b.columns, func(n int32) bool {
					return slices.Contains(s.blocks[j].columns, n)
				})
				if over := slices.Contains(b.over, int32(j)); over != meets || j != i && shares != meets {
					t.Fatalf("seed %d: blocks %d and %d share a column: %v, %v, want %v", seed, i, j, over, shares,
						meets)
				}
				same := j == i || !it.fixed && !o.fixed && it.size == o.size && it.align == o.align &&
					slices.Equal(b.columns, s.blocks[j].columns)
				if got := b.same == s.blocks[j].same; got != same {
					t.Fatalf("seed %d: blocks %d and %d are the same: %v, want %v", seed, i, j, got, same)
				}
			}
		}
		for n := range s.columns {
			var total int64
			for i := range s.blocks {
				if slices.Contains(s.blocks[i].columns, int32(n)) {
					total += s.blocks[i].room
				}
			}
			if s.columns[n].total != total {
				t.Fatalf("seed %d: column %d holds %d, its blocks take %d", seed, n, s.columns[n].total, total)
			}
		}
	}
}
