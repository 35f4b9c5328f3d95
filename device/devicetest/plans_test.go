package devicetest

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"tensile/device"
	"tensile/device/sim"
	"tensile/graph"
	"tensile/graph/cost"
	"tensile/plan/compile"

	_ "tensile/internal/long"
	"tensile/plan"
)

// the flag -long

func simulated(t testing.TB) device.Device {
	facts, err := cost.Device("a6000")
	if err != nil {
		t.Fatal(err)
	}
	return sim.New(facts, sim.Options{})
}

func TestZooHasEveryKind(t *testing.T) {
	missing := map[graph.Kind]bool{}
	for _, k := range graph.Kinds() {
		missing[k] = true
	}
	for _, op := range Zoo().Ops {
		delete(missing, op.Kind)
	}
	if len(missing) > 0 {
		t.Errorf("Zoo lacks %v", slices.Sorted(maps.Keys(missing)))
	}
}

// TestRandomPlans shows that the generator makes every sort of plan, and that each passes every proof.
func TestRandomPlans(t *testing.T) {
	d := simulated(t)
	var recomputed, first, paused, delayed, noEntry, wrapped int
	for _, g := range []*graph.Graph{Tiny(), Zoo()} {
		for seed := range uint64(300) {
			p := RandomPlan(rand.New(rand.NewPCG(seed, 0)), g)
			Build(t, d, g, p, compile.Options{Poison: seed%2 == 1})
			recomputed += len(p.Steps) - len(g.Ops)
			noEntry += len(g.Storages) - len(p.Entry)
			for _, m := range p.Moves {
				if m.Kind == plan.Out && m.After < 3 && g.Storages[m.Storage].Role == graph.Parameter {
					first++
				}
				if m.Delay > 0 && len(p.Made) > 0 {
					delayed++
				} else if m.Delay > 0 {
					paused++
				}
			}
			for _, r := range plan.StaysOf(g, p).Residencies {
				if len(r.Spans) == 2 {
					wrapped++
				}
			}
		}
	}
	for what, n := range map[string]int{"recomputed": recomputed, "out of the first version of a parameter": first,
		"paused": paused,
		"folded": delayed, "not in entry": noEntry, "wrapped": wrapped} {
		if n < 50 {
			t.Errorf("%s: %d", what, n)
		}
	}
}
