package randtest

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tensile/graph"
	"tensile/internal/long"
	"tensile/models/graphtest"
	"tensile/peak"
	"tensile/scheduler"
	"tensile/scheduler/policies"
	"tensile/scheduler/rivals/dtr"

	_ "tensile/scheduler/rivals"
)

// TestRecomputingPolicies trains random graphs by the plans of the policies that only recompute, under budgets from
// what has to stay on. Plans hold, keep the budget, and give the bits of the plain one.
func TestRecomputingPolicies(t *testing.T) {
	d := openCPU(t)
	repeats, refused, planned := make(map[string]int), make(map[string]int), make(map[string]int)
	n := long.Rounds(50, 250)
	for seed := range n {
		rng, g := seeded(seed, graphtest.Options{Ops: 40, Passes: seed%3 == 0})
		what := fmt.Sprintf("seed %d", seed)
		want := train(t, d, 2, what+" vanilla", job{g: g, seed: seed, programs: programs(t, d, what, g,
			vanilla(t, d, g))})[0]
		r := request(d, "none-live", g)
		live, err := policies.Schedule(r, nil)
		if err != nil {
			t.Fatal(what, err)
		}
		least, _ := r.WorkingSets() // and parameters and states stay
		var persistent graph.Bytes
		for i := range g.Storages {
			if s := &g.Storages[i]; s.Role.Persistent() || s.Role == graph.Input {
				persistent += scheduler.RoundUp(s.Bytes, r.Align)
			}
		}
		least = min(live.Arena, max(least, persistent))
		heuristics := []string{dtr.DTR, dtr.Eq, dtr.Local, dtr.LRU, dtr.Size, dtr.MSPS}
		own := dtr.Options{Heuristic: heuristics[rng.IntN(len(heuristics))]}
		for _, policy := range []string{"checkpoint", "sublinear", "dtr", "dtr-eq"} {
			r.Policy, r.Budget, r.Options.Own = policy, 0, own
			if rng.IntN(8) > 0 && (policy == "dtr" || policy == "dtr-eq") {
				r.Budget = least + (live.Arena-least)*graph.Bytes(30+rng.IntN(70))/100
			}
			name := fmt.Sprintf("%s %s %s within %d", what, policy, own.Heuristic, r.Budget)
			result, err := policies.Schedule(r, nil)
			if over, ok := errors.AsType[*scheduler.OverBudgetError](err); ok {
				if over.Need <= r.Budget || over.Budget != r.Budget {
					t.Fatalf("%s: %v", name, err)
				}
				refused[policy]++
				continue
			} else if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			p := result.Jobs[0].Plan
			if f := peak.Of(g, p); r.Budget > 0 && (f.Peak > r.Budget || result.Arena > r.Budget) {
				t.Fatalf("%s: peak %v, arena %v", name, f.Peak, result.Arena)
			}
			planned[policy]++
			repeats[policy] += len(p.Steps) - len(g.Ops)
			got := train(t, d, 2, name, job{g: g, seed: seed, programs: programs(t, d, name, g, p)})[0]
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("%s: other bits than by the vanilla plan (-want +got):\n%s\n%s", name, diff, p.Text(g))
			}
		}
	}
	t.Logf("planned %v, repeats %v, refused %v", planned, repeats, refused)
	for policy, count := range planned {
		if uint64(count) < n/4 || repeats[policy] < count {
			t.Errorf("%s: %d plans with %d repeats", policy, count, repeats[policy])
		}
	}
}
