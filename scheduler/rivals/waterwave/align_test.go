package waterwave

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	_ "tensile/internal/long" // the flag -long
)

// TestPairs compares Pairs with testdata/pairs.txt, which was worked out by hand. A line per job says its node groups,
// of which so many allocate, and its peak.
func TestPairs(t *testing.T) {
	datadriven.RunTest(t, "testdata/pairs.txt", func(t *testing.T, d *datadriven.TestData) string {
		var jobs []Shape
		for line := range strings.Lines(d.Input) {
			var s Shape
			if _, err := fmt.Sscan(line, &s.Groups, &s.Grow, &s.Peak); err != nil {
				t.Fatal(err)
			}
			jobs = append(jobs, s)
		}
		var limit, split int
		d.ScanArgs(t, "limit", &limit)
		d.ScanArgs(t, "split", &split)
		var b strings.Builder
		fmt.Fprintf(&b, "    %-6s dv\n", "av")
		say := func(g NodeGroup) string {
			if g == None {
				return "-"
			}
			return fmt.Sprintf("J%dNG%d", g.Job+1, g.Group+1)
		}
		for i, pair := range Pairs(jobs, limit, split) {
			fmt.Fprintf(&b, "%2d  %-6s %s\n", i, say(pair[0]), say(pair[1]))
		}
		return b.String()
	})
}

// printed is Algorithm 1 line by line, for jobs that are sorted, with the loops' counters as Pairs says.
func printed(jobs []Shape, limit, split int) (av, dv map[int]NodeGroup) {
	av, dv = map[int]NodeGroup{}, map[int]NodeGroup{}
	p := max(0, (limit-jobs[0].Peak)/split-1) // 4
	if len(jobs) > 1 {
		p = min(p, jobs[0].Grow, jobs[1].Grow)
	}
	offset := jobs[0].Grow - p    // 5
	idx1, idx2 := 0, jobs[0].Grow // 6
	for id, job := range jobs {   // 7
		i, s := 0, 0 // 8
		if id == 1 { // 10
			for s = p; i < s; i++ { // 11
				dv[offset] = NodeGroup{id, i} // 12
				offset++
			}
		}
		for i = s; i <= job.Grow-1; i++ { // 15
			av[idx1] = NodeGroup{id, i} // 16
			idx1++
		}
		for ; i < job.Groups; i++ { // 19
			if id == len(jobs)-1 && idx2 > idx1 { // 20
				av[idx1] = NodeGroup{id, i} // 21
				idx1++
			} else {
				dv[idx2] = NodeGroup{id, i} // 24
				idx2++
			}
		}
	}
	return av, dv
}

// randomShapes returns jobs in descending order of their node groups.
func randomShapes(r *rand.Rand) []Shape {
	shapes := make([]Shape, 1+r.IntN(5))
	for i := range shapes {
		n := 1 + r.IntN(9)
		shapes[i] = Shape{Groups: n, Grow: 1 + r.IntN(n), Peak: 1 + r.IntN(20)}
		if r.IntN(2) == 0 {
			shapes[i].Grow = max(1, n/2)
		}
	}
	slices.SortStableFunc(shapes, func(a, b Shape) int { return b.Groups - a.Groups })
	return shapes
}

// Whatever the jobs: each node group is issued once, those of a job in their order, and a pair is of two jobs. Where
// the printed lines keep the order of each job, the pairs are theirs.
func TestPairsRandom(t *testing.T) {
	same := 0
	for seed := range uint64(20_000) {
		r := rand.New(rand.NewPCG(seed, 31))
		jobs, limit, split := randomShapes(r), r.IntN(50), 1+r.IntN(5)
		pairs := Pairs(jobs, limit, split)
		fail := func(format string, args ...any) {
			t.Fatalf("seed %d, jobs %v, limit %d, split %d: %s\n%v", seed, jobs, limit, split,
				fmt.Sprintf(format, args...), pairs)
		}
		next := make([]int, len(jobs))
		for k, pair := range pairs {
			if pair[0] != None && pair[0].Job == pair[1].Job {
				fail("pair %d is of one job", k)
			}
			for _, g := range pair {
				if g == None {
					continue
				}
				if g.Group != next[g.Job] {
					fail("%v comes after %d of its job", g, next[g.Job])
				}
				next[g.Job]++
			}
		}
		for i, n := range next {
			if n != jobs[i].Groups {
				fail("%d of job %d are issued", n, i)
			}
		}
		av, dv := printed(jobs, limit, split)
		if !inOrder(jobs, av, dv) {
			continue
		}
		same++
		for k := range max(len(pairs), len(av)+len(dv)) {
			at := func(v map[int]NodeGroup, n int) {
				want, ok := v[k]
				if !ok {
					want = None
				}
				got := None
				if k < len(pairs) {
					got = pairs[k][n]
				}
				if got != want {
					fail("pair %d has %v in vector %d, printed %v", k, got, n, want)
				}
			}
			at(av, 0)
			at(dv, 1)
		}
	}
	if same < 5000 {
		t.Errorf("the printed lines kept the order of %d systems alone", same)
	}
}

// inOrder reports whether the node groups of each job follow each other, and none was overwritten.
func inOrder(jobs []Shape, av, dv map[int]NodeGroup) bool {
	at := make(map[NodeGroup]int)
	for _, v := range []map[int]NodeGroup{av, dv} {
		for k, g := range v {
			at[g] = k
		}
	}
	for id, job := range jobs {
		for i := range job.Groups {
			k, ok := at[NodeGroup{id, i}]
			if !ok || i > 0 && k <= at[NodeGroup{id, i - 1}] {
				return false
			}
		}
	}
	return true
}
