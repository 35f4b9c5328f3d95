package trace

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// slowRuns tries every period at every place.
func slowRuns(of []int32) []run {
	var found []run
	for period := 1; 2*period <= len(of); period++ {
		for from := 0; from+2*period <= len(of); from++ {
			if from > 0 && of[from-1] == of[from-1+period] {
				continue
			}
			to := from + period
			for to < len(of) && of[to] == of[to-period] {
				to++
			}
			smallest := !slices.ContainsFunc(found, func(r run) bool { return r.from == from && r.to == to })
			if to-from >= 2*period && smallest {
				found = append(found, run{from, to, period})
			}
		}
	}
	return found
}

func TestRuns(t *testing.T) {
	for seed := range uint64(4000) {
		rng := rand.New(rand.NewPCG(seed, 1))
		of := make([]int32, rng.IntN(40))
		letters := 1 + rng.Int32N(4)
		for i := range of {
			if of[i] = rng.Int32N(letters); i > 8 && rng.IntN(3) > 0 {
				of[i] = of[i-1-rng.IntN(8)]
			}
		}
		got := runs(of)
		sort := func(rs []run) []run {
			slices.SortFunc(rs, func(a, b run) int {
				return slices.Compare([]int{a.period, a.from, a.to}, []int{b.period, b.from, b.to})
			})
			return slices.Compact(rs)
		}
		if diff := cmp.Diff(sort(slowRuns(of)), sort(got), cmp.AllowUnexported(run{})); diff != "" {
			t.Fatalf("seed %d: runs of %v: %s", seed, of, diff)
		}
	}
}

// The number of runs stays below the length, whatever the sequence: here of words in which it is large.
func TestRunsAreFew(t *testing.T) {
	fibonacci, next := []int32{0}, []int32{0, 1}
	for len(next) < 20_000 {
		fibonacci, next = next, slices.Concat(next, fibonacci)
	}
	if got := len(runs(next)); got >= 2*len(next) || got < len(next)/2 {
		t.Errorf("%d runs in a Fibonacci word of %d letters", got, len(next))
	}
	if got := runs(make([]int32, 100_000)); len(got) == 0 || got[0] != (run{0, 100_000, 1}) {
		t.Errorf("runs of one letter over and over: %v", got[:min(len(got), 5)])
	}
}
