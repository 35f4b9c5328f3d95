package plan_test

import (
	"slices"
	"testing"

	"tensile/graph"
	_ "tensile/internal/long" // the flag -long
	"tensile/plan"
	"tensile/plan/pool"
)

// slowStays returns, per storage and slot, whether the storage is on the device: by walking through two iterations with
// a set of what is there.
func slowStays(g *graph.Graph, p *plan.Plan) [][]bool {
	there := make([]bool, len(g.Storages))
	for _, s := range p.Entry {
		there[s] = true
	}
	slots := make([][]bool, len(g.Storages))
	for s := range slots {
		slots[s] = make([]bool, len(p.Steps))
	}
	follow := func(after int) {
		for _, m := range p.Moves {
			if m.After == after && m.Kind != plan.Out {
				there[m.Storage] = m.Kind == plan.In
			}
		}
	}
	for range 2 {
		follow(-1)
		for slot, step := range p.Steps {
			for i, w := range g.Writes(step.Op) {
				there[w.Storage] = there[w.Storage] || step.Want.Has(i)
			}
			for s := range there {
				slots[s][slot] = there[s]
			}
			follow(slot)
		}
	}
	return slots
}

// TestStaysOf compares residencies with the slow walk, and shows that their spans are in order.
func TestStaysOf(t *testing.T) {
	for seed := range uint64(1000) {
		g, p := random(seed)
		got := make([][]bool, len(g.Storages))
		for s := range got {
			got[s] = make([]bool, len(p.Steps))
		}
		for _, r := range plan.StaysOf(g, p).Residencies {
			if !slices.IsSortedFunc(r.Spans, func(a, b pool.Span) int {
				return a.To - b.From - 1
			}) || len(r.Spans) == 0 || len(r.Spans) > 2 {
				t.Fatalf("seed %d: spans %v", seed, r.Spans)
			}
			for _, span := range r.Spans {
				for slot := span.From; slot < span.To; slot++ {
					if got[r.Storage][slot] {
						t.Fatalf("seed %d: %s is there twice in slot %d", seed, g.Storages[r.Storage].Name, slot)
					}
					got[r.Storage][slot] = true
				}
			}
		}
		for s, want := range slowStays(g, p) {
			if !slices.Equal(got[s], want) {
				t.Fatalf("seed %d: %s is there in %v, want %v\n%s", seed, g.Storages[s].Name, got[s], want, p.Text(g))
			}
		}
	}
}
