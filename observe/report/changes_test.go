package report

import (
	"fmt"
	"testing"

	"tensile/graph"
	"tensile/plan"
	"tensile/scheduler/planner"
)

// Between a plan that moves nothing and one within a tight budget exactly those storages and ops change that the latter
// swaps, recomputes or repeats. A plan does not differ from itself.
func TestChanges(t *testing.T) {
	_, r, free, _ := twoJobs(t, "none-live", 0)
	r.Policy, r.Budget, r.Out.Rate, r.In.Rate = "tensile", free.Arena*7/10, 2e9, 2e9 // a link too slow to swap all
	low, err := planner.Schedule(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	g, before, now := r.Jobs[0].Graph, free.Jobs[0].Plan, low.Jobs[0].Plan
	if same := Changes(g, now, now); len(same) != 0 || same == nil {
		t.Errorf("a plan differs from itself: %v", same)
	}
	want := make(map[Change]bool)
	copied, fetched, runs := 0, make(map[graph.StorageID]int), make(map[graph.OpID]int)
	for _, m := range now.Moves {
		if m.Kind == plan.In {
			fetched[m.Storage]++
		}
	}
	for s, n := range fetched {
		name := g.Storages[s].Name
		if g.Storages[s].Role == graph.Input && n > 1 {
			want[Change{Storage: name, Before: "fetched once", Now: fmt.Sprintf("fetched %d times", n)}] = true
		} else if g.Storages[s].Role != graph.Input {
			copied += n
			how := "swapped"
			if n > 1 {
				how = fmt.Sprintf("swapped %d times", n)
			}
			want[Change{Storage: name, Before: "stays on the device", Now: how}] = true
		}
	}
	for _, s := range now.Steps {
		runs[s.Op]++
	}
	repeated := 0
	for op, n := range runs {
		if n > 1 {
			repeated++
			made := g.Storages[g.Tensors[g.Ops[op].Outputs[0]].Storage]
			want[Change{Storage: made.Name, Before: "stays on the device", Now: "recomputed"}] = true
			want[Change{Op: g.Ops[op].Name, Before: "executed once", Now: fmt.Sprintf("executed %d times", n)}] = true
		}
	}
	if copied == 0 || repeated == 0 {
		t.Fatalf("%d swaps and %d repeated ops: the test shows nothing", copied, repeated)
	}
	if CountSwaps(g, now) != copied || CountSwaps(g, before) != 0 {
		t.Errorf("%d swaps, want %d; %d before, want none", CountSwaps(g, now), copied, CountSwaps(g, before))
	}
	for _, c := range Changes(g, before, now) {
		if !want[c] {
			t.Errorf("%+v: the plans do not differ so", c)
		}
		delete(want, c)
	}
	for c := range want {
		t.Errorf("%+v is not listed", c)
	}
}
