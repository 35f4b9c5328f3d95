package wire

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"tensile/graph"
	"tensile/plan"
	"tensile/scheduler"
)

// What a planner said of each storage is what is read of a layout that has travelled, in the planner's order.
func TestReasons(t *testing.T) {
	for seed := range uint64(300) {
		r := maker{rand.New(rand.NewPCG(seed, 3))}
		n := 1 + r.IntN(9)
		var s scheduler.Scheduled
		about := make(map[graph.StorageID][]scheduler.Decision)
		for range r.IntN(20) {
			d := scheduler.Decision{Storage: graph.StorageID(r.IntN(4)), Kind: scheduler.Kind(r.IntN(3)),
				From: r.IntN(n+1) - 1, To: r.IntN(2 * n), Freed: r.IntN(n), Away: r.duration(), Cost: r.duration(),
				Reason: []string{"both copies fit", "it is small", "there is no host memory"}[r.IntN(3)]}
			s.Decisions = append(s.Decisions, d)
			about[d.Storage] = append(about[d.Storage], d)
		}
		sent := r.layout()
		sent.Plan.Steps, sent.Scratch = make([]plan.Step, n), nil
		sent.Reasons = ReasonsOf(&s, 0.5)
		l, err := DecodeAs[Layout](Encode(sent))
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if diff := cmp.Diff(s.Decisions, l.Reasons.All()); diff != "" {
			t.Fatalf("seed %d: %s", seed, diff)
		}
		for storage := range graph.StorageID(5) {
			got := l.Reasons.About(storage)
			if diff := cmp.Diff(about[storage], got, cmpopts.EquateEmpty()); diff != "" {
				t.Fatalf("seed %d: storage %d: %s", seed, storage, diff)
			}
		}
		if texts := slices.Compact(slices.Sorted(slices.Values(l.Reasons.Texts))); len(texts) != len(l.Reasons.Texts) {
			t.Errorf("seed %d: a text travels twice in %q", seed, l.Reasons.Texts)
		}
	}
}
