package waterwave

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"tensile/device/lease"
)

func groupsOf(pages ...int) (groups []lease.Group) {
	for _, n := range pages {
		groups = append(groups, lease.Group{Pages: n, Time: time.Duration(n)})
	}
	return groups
}

// A node group ends where pages have grown or shrunk by the split size, and at the peak; the last one is what is left.
func TestCut(t *testing.T) {
	for _, test := range []struct {
		pages []int
		base  int
		split int
		ends  []int
		grow  int
	}{
		{[]int{3, 5, 7, 5, 3, 1}, 1, 2, []int{1, 2, 3, 4, 5, 6}, 3}, // as in Figure 5
		{[]int{3, 5, 7, 5, 3, 1}, 1, 4, []int{2, 3, 4, 6}, 2},       // 1 to 5, 5 to 7, 7 to 3, 3 to 1
		{[]int{3, 5, 7, 5, 3, 1}, 1, 100, []int{3, 6}, 1},           // forward and backward: Waterwave-s
		{[]int{2, 3, 2, 3, 4, 3}, 1, 3, []int{5, 6}, 1},             // a dip below the split size
		{[]int{5, 2, 6, 1}, 1, 3, []int{1, 2, 3, 4}, 3},             // one above it
		{[]int{4, 4, 4}, 4, 2, []int{1, 3}, 1},
		{[]int{1, 2, 3}, 1, 5, []int{3}, 1}, // at the peak to the end
		{nil, 3, 2, []int{1}, 1},            // not known
	} {
		n := cut(groupsOf(test.pages...), test.base, test.split)
		if !slices.Equal(n.ends, test.ends) || n.grow != test.grow {
			t.Errorf("%v from %d by %d: ends %v, %d grow, want %v, %d", test.pages, test.base, test.split, n.ends,
				n.grow, test.ends, test.grow)
		}
	}
}

// Node groups have all groups and their time; each but the last ones of both halves changes memory by the split size.
func TestCutRandom(t *testing.T) {
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 41))
		base, split := r.IntN(10), 1+r.IntN(30)
		pages := make([]int, 1+r.IntN(40))
		for i := range pages {
			pages[i] = base + r.IntN(50)
		}
		groups := groupsOf(pages...)
		n := cut(groups, base, split)
		var took, all time.Duration
		for _, g := range groups {
			all += g.Time
		}
		from := 0
		for i, to := range n.ends {
			took += n.times[i]
			if to <= from {
				t.Fatalf("seed %d: ends %v", seed, n.ends)
			}
			for g := from; g < to; g++ {
				if n.nodeGroupOf(g) != i {
					t.Fatalf("seed %d: group %d is in node group %d of %v", seed, g, n.nodeGroupOf(g), n.ends)
				}
			}
			from = to
		}
		peak := slices.Index(pages, slices.Max(pages))
		if from != len(pages) || took != all || n.grow < 1 || n.ends[n.grow-1] != peak+1 {
			t.Fatalf("seed %d: pages %v: ends %v, %d grow, %v of %v", seed, pages, n.ends, n.grow, took, all)
		}
		for i, to := range n.ends[:n.grow] {
			level := base
			if i > 0 {
				level = pages[n.ends[i-1]-1]
			}
			if grown := pages[to-1] - level; i < n.grow-1 && max(grown, -grown) < split {
				t.Fatalf("seed %d: node group %d grows by %d, of %d", seed, i, grown, split)
			}
		}
	}
}

// One that asks waits for the lease, and is not missed however long that takes.
func TestAskingIsNotMissed(t *testing.T) {
	m := New(Options{})
	if at := m.missed(&job{asking: true}); at != lease.Never {
		t.Errorf("missed at %v", at)
	}
	if at := m.missed(&job{heard: 3}); at != 3+patient {
		t.Errorf("one that does not ask is missed at %v, want %v", at, 3+patient)
	}
}
