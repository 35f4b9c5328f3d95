package controller

import (
	"math/rand/v2"
	"testing"

	"tensile/cost"
	"tensile/graph"
	"tensile/internal/randgraph"
	"tensile/planner"
	"tensile/wire"
)

// What jobs claim together, by their programs alone, is what their plans were to need, and within the budget.
func TestPlansShareMemory(t *testing.T) {
	var shared, refused, less int
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 5))
		link := cost.Link{Rate: 100e6, Latency: 1000}
		c := Config{Device: "model", Align: 64, Out: link, In: link, Policy: "tensile",
			Page: 64 << rng.IntN(5), MemorySharing: [...]wire.Sharing{wire.Gates, wire.Slices}[seed%2]}
		on := c.Shared(planner.Device{Align: c.Align, Out: link, In: link, Profile: profile, Page: c.Page})
		p := Planner{Config: c, On: on}
		q := &Plan{Ticket: 1}
		for i := range 2 + rng.IntN(2) {
			g := randgraph.New(rng, randgraph.Options{})
			q.Jobs = append(q.Jobs, Candidate{Spec: wire.Spec{Name: string(rune('a' + i)), Graph: g.Digest()}, Epoch: 1,
				Graph: g, Left: 10, Fresh: true})
		}
		free := p.Plan(t.Context(), q)
		least, _ := claimed(free.Jobs)
		q.Budget = least * graph.Bytes(80+rng.IntN(21)) / 100
		q.Admitted = len(q.Jobs)
		for i := range q.Jobs {
			profile := free.New[i]
			q.Jobs[i].Profile, q.Jobs[i].Latency = &profile, profile.Latency
		}
		planned := p.Plan(t.Context(), q)
		if planned.Why != nil {
			refused++
			continue
		}
		shared++
		needs, sum := claimed(planned.Jobs)
		if needs > q.Budget {
			t.Errorf("seed %d, %s: jobs claim %s of %s", seed, c.MemorySharing, needs, q.Budget)
		}
		if sum > q.Budget {
			less++
		}
	}
	t.Logf("%d planned for, %d refused, %d whose arenas alone would not fit", shared, refused, less)
	if shared < 20 || less < 20 {
		t.Errorf("only %d planned for, %d whose arenas alone would not fit", shared, less)
	}
}

// claimed is what jobs claim together, and the sum of their arenas.
func claimed(jobs []PlannedJob) (together, arenas graph.Bytes) {
	var sum Together
	for _, j := range jobs {
		sum = sum.With(j.Layout.claim())
		arenas += j.Layout.Wire.Arena
	}
	return sum.Bytes(), arenas
}
