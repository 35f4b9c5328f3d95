package randtest

import (
	"math/rand/v2"
	"slices"
	"testing"

	"tensile/graph"
	"tensile/internal/long"
	"tensile/models/graphtest"
	"tensile/plan"
	"tensile/plan/proof"
)

// random returns the graph and the plan of a seed.
func random(seed uint64) (*graph.Graph, *plan.Plan) {
	rng := rand.New(rand.NewPCG(seed, 2))
	g := graphtest.New(rng, graphtest.Options{Passes: seed/2%2 == 1})
	scratch := make([]graph.Bytes, len(g.Ops))
	for i := range scratch {
		scratch[i] = 4 * graph.Bytes(rng.IntN(64))
	}
	return g, New(rng, g, scratch)
}

// TestNew shows that every plan is valid, and that the generator does everything that a plan may do.
func TestNew(t *testing.T) {
	seeds := long.Rounds(1000, 4000)
	found := map[string]int{}
	for seed := range seeds {
		g, p := random(seed)
		if err := proof.Validate(g, p); err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, p.Text(g))
		}
		for what, has := range features(g, p) {
			if has {
				found[what]++
			} else {
				found[what] += 0
			}
		}
	}
	t.Logf("of %d plans: %v", seeds, found)
	for what, n := range found {
		if n < int(seeds)/25 {
			t.Errorf("%s in %d plans of %d", what, n, seeds)
		}
	}
}

func TestSameSeed(t *testing.T) {
	for seed := range uint64(50) {
		g, p := random(seed)
		if _, q := random(seed); p.Text(g) != q.Text(g) {
			t.Fatalf("seed %d: two plans", seed)
		}
	}
}

// features tells what a plan does.
func features(g *graph.Graph, p *plan.Plan) map[string]bool {
	has := map[string]bool{"plain": len(p.Steps) == len(g.Ops)}
	ran := map[graph.OpID]bool{}
	first := graph.OpID(-1)
	for slot, step := range p.Steps {
		has["repeated op"] = has["repeated op"] || ran[step.Op]
		has["versions made again"] = has["versions made again"] || ran[step.Op] && !g.Pure(step.Op)
		if n := len(g.Ops[step.Op].Outputs); n > 1 && step.Want != 0 {
			has["part of the outputs at first"] = has["part of the outputs at first"] || !ran[step.Op]
			has["part of the outputs again"] = has["part of the outputs again"] || ran[step.Op]
		}
		if slot > 0 && ran[step.Op] && ran[p.Steps[slot-1].Op] && slices.Contains(p.Steps[:slot-1], p.Steps[slot-1]) {
			for _, r := range g.Reads(step.Op) {
				has["chain of repetitions"] = has["chain of repetitions"] ||
					slices.Contains(g.Writes(p.Steps[slot-1].Op), r)
			}
		}
		if !ran[step.Op] {
			has["another order"] = has["another order"] || step.Op < first
			first = max(first, step.Op)
		}
		ran[step.Op] = true
	}
	moveFeatures(g, p, has)
	for _, r := range plan.StaysOf(g, p).Residencies {
		has["stay over the boundary"] = has["stay over the boundary"] || len(r.Spans) == 2
	}
	return has
}

func moveFeatures(g *graph.Graph, p *plan.Plan, has map[string]bool) {
	count := map[plan.MoveKind][]int{plan.Out: make([]int, len(g.Storages)), plan.In: make([]int, len(g.Storages))}
	last := g.LastVersions()
	outs := make([]bool, len(g.Storages))
	for _, m := range p.Moves {
		role := g.Storages[m.Storage].Role
		_, entry := slices.BinarySearch(p.Entry, m.Storage)
		if m.Kind != plan.Drop {
			count[m.Kind][m.Storage]++
		}
		mark := func(what string, b bool) { has[what] = has[what] || b }
		mark("dropped while the host copy of the last iteration is valid", m.Kind == plan.Drop &&
			role == graph.Parameter && !outs[m.Storage] && last[m.Storage] > 0)
		mark("last version out in the next iteration", m.Kind == plan.Out && role.Persistent() && m.After < 2 &&
			last[m.Storage] > 0)
		mark("comes in over the boundary", m.Kind == plan.In && role.Persistent() && entry && m.After == len(p.Steps)-1)
		mark("activation swapped", m.Kind == plan.In && !role.FromHost())
		mark("sync", m.Sync)
		mark("delay to fold", m.Delay > 0 && len(p.Made) > 0)
		mark("delay to hold", m.Delay > 0 && len(p.Made) == 0)
		mark("in at once after drop", m.Kind == plan.In && slices.Contains(p.Moves, plan.Move{Kind: plan.Drop,
			Storage: m.Storage, After: m.After}))
		outs[m.Storage] = outs[m.Storage] || m.Kind == plan.Out
	}
	for s, storage := range g.Storages {
		_, entry := slices.BinarySearch(p.Entry, graph.StorageID(s))
		has["swapped repeatedly"] = has["swapped repeatedly"] || count[plan.In][s] > 1
		has["out repeatedly"] = has["out repeatedly"] || count[plan.Out][s] > 1
		has["persistent, not there at the boundary"] = has["persistent, not there at the boundary"] ||
			storage.Role.Persistent() && last[s] > 0 && !entry
		has["persistent, never copied out"] = has["persistent, never copied out"] || storage.Role.Persistent() &&
			last[s] > 0 && entry && count[plan.Out][s] == 0
	}
}
