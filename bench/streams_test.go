package bench

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// hill is a job that allocates a block of a unit in each of n steps and frees them in the n steps after, the newest
// first. It holds stays besides.
func hill(n int, unit, stays int64) *streamed {
	s := &streamed{stays: []int64{stays}, before: make([][]int, 2*n), after: make([][]int, 2*n),
		growth: make([]int64, 2*n), peak: stays + int64(n)*unit, steps: 2 * n}
	for i := range n {
		s.sizes = append(s.sizes, unit)
		s.before[i], s.after[2*n-1-i] = []int{i}, []int{i}
		s.growth[i], s.growth[2*n-1-i] = unit, -unit
	}
	return s
}

// What a host schedules far ahead of the device is not free before the device comes to it: the peak comes later and is
// higher, here all that the iteration ever allocates.
func TestFreed(t *testing.T) {
	// Steps that each allocate a block for themselves, after one that holds a block until the end.
	s := &streamed{stays: []int64{5}, before: [][]int{{0}, {1}, {2}, {3}}, after: [][]int{{}, {1}, {2}, {0, 3}},
		sizes: []int64{10, 20, 20, 20}, growth: []int64{10, 0, 0, -10}, steps: 4}
	takes := []time.Duration{100, 100, 100, 100}
	if got, want := s.freed(1, takes, false), (freedRun{35, 1, 401}); got != want {
		t.Errorf("freed after scheduling: %+v, want %+v", got, want)
	}
	if got, want := s.freed(1, takes, true), (freedRun{75, 3, 401}); got != want {
		t.Errorf("freed after computation: %+v, want %+v", got, want)
	}
	// A device that waits for the host is a step behind.
	if got, want := s.freed(1000, takes, true), (freedRun{55, 2000, 4100}); got != want {
		t.Errorf("freed after computation, scheduled slowly: %+v, want %+v", got, want)
	}
}

// Two jobs that hold 4 and come to 100 more need one peak and what both hold. Without anything beside, each allocation
// of the second one has to synchronise the streams to get what the first one has freed; with room for a node group it
// takes what was freed in the pair before.
func TestPaired(t *testing.T) {
	jobs := []*streamed{hill(50, 2, 4), hill(50, 2, 4)}
	if alone := paired(jobs[:1], 104, 10, 10); alone != (pairedRun{Fits: true}) || paired(jobs[:1], 103, 10, 10).Fits {
		t.Errorf("a job alone needs 104: %+v", alone)
	}
	for _, split := range []int64{2, 10, 20, 50, 100} {
		pairs := int(100/split*4) - int(100/split)
		if got, want := paired(jobs, 108, split, split), (pairedRun{true, pairs, 50}); got != want {
			t.Errorf("split %d, least: %+v, want %+v", split, got, want)
		}
		if got, want := paired(jobs, 108+split, split, split), (pairedRun{true, pairs, 0}); got != want {
			t.Errorf("split %d, room for a node group: %+v, want %+v", split, got, want)
		}
		if got := paired(jobs, 107, split, split); got.Fits {
			t.Errorf("split %d: they fit into less than a peak: %+v", split, got)
		}
	}
}

// A node group grows or shrinks by split, and ends at the peak.
func TestStreamedCut(t *testing.T) {
	ends, grow := hill(10, 2, 4).cut(6, 6)
	if want := []int{3, 6, 9, 10, 13, 16, 19, 20}; !slices.Equal(ends, want) || grow != 4 {
		t.Errorf("ends %v, %d grow, want %v and 4", ends, grow, want)
	}
}

// Where node groups that deallocate as much as others allocate leave too little, larger ones may do.
func TestRound(t *testing.T) {
	more := 0
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 7))
		jobs := []*streamed{workspaces(r, 40), workspaces(r, 40)}
		capacity, split := jobs[0].peak+jobs[1].stays[0]+int64(r.IntN(40)), int64(8+r.IntN(20))
		got, any := round(jobs, capacity, split), false
		for _, shrink := range []int64{split, split * 3 / 2, split * 2} {
			any = any || paired(jobs, capacity, split, shrink).Fits
		}
		if got.Fits != any {
			t.Fatalf("seed %d: fits: %v, want %v", seed, got.Fits, any)
		}
		if got.Fits && !paired(jobs, capacity, split, split).Fits {
			more++
		}
	}
	if more == 0 {
		t.Error("larger node groups that deallocate never help")
	}
}

// workspaces is a hill whose steps have blocks for themselves, too.
func workspaces(r *rand.Rand, n int) *streamed {
	s := hill(n, 2, 4)
	s.peak = 0
	for step := range s.steps {
		size := int64(1 + r.IntN(12))
		id := len(s.sizes)
		s.sizes = append(s.sizes, size)
		s.before[step], s.after[step] = append(s.before[step], id), append(s.after[step], id)
		s.peak = max(s.peak, 4+2*int64(min(step+1, 2*n-step))+size)
	}
	return s
}

// Where less does not fit though more does, the most is found that is a 50th part or was met.
func TestLargest(t *testing.T) {
	for _, c := range []struct {
		about string
		most  int
		dips  bool
		fits  func(int) bool
		want  int
	}{
		{"all", 100, false, func(int) bool { return true }, 100},
		{"none", 100, true, func(int) bool { return false }, 0},
		{"up to 77", 100, true, func(n int) bool { return n <= 77 }, 77},
		{"up to 1", 300, false, func(n int) bool { return n <= 1 }, 1},
		{"up to 60, and 92", 100, true, func(n int) bool { return n <= 60 || n == 92 }, 92},
		{"up to 60, and 92, where nothing dips", 100, false, func(n int) bool { return n <= 60 || n == 92 }, 60},
		{"a few", 3, true, func(n int) bool { return n <= 2 }, 2},
	} {
		got, err := largest(c.most, c.dips, func(n int) (bool, error) {
			if n < 1 || n > c.most {
				t.Errorf("%s: asked for %d of %d", c.about, n, c.most)
			}
			return c.fits(n), nil
		})
		if err != nil || got != c.want {
			t.Errorf("%s: %d, %v, want %d", c.about, got, err, c.want)
		}
	}
}
