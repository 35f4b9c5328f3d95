package draft

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"tensile/graph"
	"tensile/models/graphtest"
	"tensile/plan"
	"tensile/plan/proof"
	"tensile/scheduler"
)

// TestDies swaps all gaps of what scripts do over a link that costs no time. What is left in each slot is found the
// slow way: what the op touches, its scratch, and what is there and too small to leave. So what a script holds beyond
// its last use is away then; it is copied out once, and nothing copies it back in only to be let go.
func TestDies(t *testing.T) {
	dying, plans := 0, 0
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 57))
		g := graphtest.Script(rng)
		j := scheduler.Job{Name: "a", Epoch: 1, Graph: g, Least: graph.Bytes(rng.IntN(600))}
		for range g.Ops {
			j.Latency = append(j.Latency, 1+time.Duration(rng.IntN(1000)))
		}
		s := opened(scheduler.Request{Policy: "tensile", Align: 1, Jobs: []scheduler.Job{j}})
		d := s.Drafts(GraphOrder, Style{})[0]
		d.SwapSmall()
		for _, x := range slices.Clone(d.gaps) {
			if !d.MaySwap(x) {
				continue
			}
			if d.TryAnywhere(x) && x.dies {
				dying++
			}
		}
		if got, want := d.Footprint(), leastOf(g, j.Least); !slices.Equal(got, want) {
			t.Fatalf("seed %d: per slot there are %v, want %v", seed, got, want)
		}
		p := d.Plan("tensile")
		p.Graph = g.Digest()
		if err := proof.Validate(g, p); err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, p.Text(g))
		}
		last := g.LastTouches()
		for _, m := range p.Moves {
			if s := g.Storages[m.Storage]; m.Kind == plan.In && !s.Role.Persistent() &&
				m.After >= int(last[m.Storage]) {
				t.Fatalf("seed %d: %s comes back when nothing uses it any more\n%s", seed, s.Name, p.Text(g))
			}
		}
		plans++
	}
	if t.Logf("%d storages of %d plans leave before a script lets them go", dying, plans); dying < 300 {
		t.Errorf("%d storages leave before a script lets them go: too few", dying)
	}
}

// leastOf is what must be on the device per op of a script.
func leastOf(g *graph.Graph, least graph.Bytes) []graph.Bytes {
	slots := make([]graph.Bytes, len(g.Ops))
	last := g.LastTouches()
	for op := range g.Ops {
		slots[op] = g.WorkingSet(graph.OpID(op)) + g.Scratch(graph.OpID(op), false)
	}
	for i, s := range g.Storages {
		if s.Bytes >= least || last[i] < 0 {
			continue
		}
		first, end := 0, len(g.Ops)
		if !s.Role.Persistent() {
			first = slices.IndexFunc(g.Ops, func(o graph.Op) bool {
				return slices.ContainsFunc(o.Outputs, func(x graph.TensorID) bool {
					return g.Tensors[x].Storage == s.ID
				})
			})
			end = max(int(last[i])+1, int(s.Until))
		}
		for op := first; op < end; op++ {
			if !slices.Contains(g.Touches(graph.OpID(op)), s.ID) {
				slots[op] += s.Bytes
			}
		}
	}
	return slots
}
