package peak

import "tensile/graph"

// Vanilla returns what a graph needs without a plan, in graph order and without scratch: all, when nothing is freed
// before the iteration ends, and live, when everything is freed after its last use. Inputs come while the op before
// their first reader is executed.
func Vanilla(g *graph.Graph) (all, live graph.Bytes) {
	order := make([]graph.OpID, len(g.Ops))
	for op := range order {
		order[op] = graph.OpID(op)
	}
	return VanillaIn(g, order)
}

// VanillaIn is Vanilla with the ops in another order.
func VanillaIn(g *graph.Graph, order []graph.OpID) (all, live graph.Bytes) {
	const unused = -1
	last := make([]int, len(g.Storages))
	for i := range last {
		last[i] = unused
	}
	for at, op := range order {
		for _, s := range g.Touches(op) {
			last[s] = at
		}
	}
	var now graph.Bytes
	here := make([]bool, len(g.Storages))
	arrive := func(s graph.Storage) {
		if !here[s.ID] {
			here[s.ID] = true
			now += s.Bytes
			all += s.Bytes
		}
	}
	for _, s := range g.Storages {
		if s.Role.Persistent() && last[s.ID] != unused {
			arrive(s)
		}
	}
	for at, op := range order {
		touched := g.Touches(op)
		for _, s := range touched {
			arrive(g.Storages[s])
		}
		if next := at + 1; next < len(order) {
			for _, s := range g.Touches(order[next]) {
				if g.Storages[s].Role == graph.Input {
					arrive(g.Storages[s])
				}
			}
		}
		live = max(live, now)
		for _, s := range touched {
			if last[s] == at && !g.Storages[s].Role.Persistent() {
				now -= g.Storages[s].Bytes
			}
		}
	}
	return all, live
}
