package vdnn

import (
	"cmp"
	"slices"
	"time"

	"tensile/graph"
	"tensile/plan"
	"tensile/scheduler"
	"tensile/scheduler/draft"
)

// decide says what the placed plans swap. What frees the most bytes times slots comes first.
func decide(s *draft.Session, result *scheduler.Result) {
	for i := range result.Jobs {
		j := &result.Jobs[i]
		_, in := s.Links(i)
		s.Count(2 * (len(j.Plan.Steps) + len(j.Plan.Moves)))
		j.Decisions = swaps(s.Request.Jobs[i].Graph, j.Plan, func(b graph.Bytes) time.Duration { return in.Time(b) })
	}
}

// swaps lists what leaves the device within an iteration and comes back.
func swaps(g *graph.Graph, p *plan.Plan, takes func(graph.Bytes) time.Duration) []scheduler.Decision {
	starts := make([]time.Duration, len(p.Steps)+1)
	for slot, d := range p.Made {
		starts[slot+1] = starts[slot] + d
	}
	dropped := make(map[graph.StorageID]int)
	var all []scheduler.Decision
	for _, m := range p.Moves {
		drop, left := dropped[m.Storage]
		switch {
		case m.Kind == plan.Drop:
			dropped[m.Storage] = m.After
		case m.Kind == plan.In && left:
			d := scheduler.Decision{Storage: m.Storage, Kind: scheduler.Swap, From: drop, To: use(g, p, m),
				Freed: m.After - drop, Away: starts[m.After+1] - starts[drop+1], Reason: "prefetched a layer ahead"}
			if m.Sync {
				d.Cost, d.Reason = takes(g.Storages[m.Storage].Bytes), "late: no layer before prefetched it"
			}
			all = append(all, d)
		}
	}
	slices.SortStableFunc(all, func(a, b scheduler.Decision) int {
		return cmp.Compare(g.Storages[b.Storage].Bytes*graph.Bytes(b.Freed),
			g.Storages[a.Storage].Bytes*graph.Bytes(a.Freed))
	})
	return all
}

// use returns the first step after a move that touches its storage.
func use(g *graph.Graph, p *plan.Plan, m plan.Move) int {
	for slot := m.After + 1; slot < len(p.Steps); slot++ {
		if slices.Contains(g.Touches(p.Steps[slot].Op), m.Storage) {
			return slot
		}
	}
	return len(p.Steps)
}
