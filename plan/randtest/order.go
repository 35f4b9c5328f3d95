package randtest

import (
	"math/rand/v2"

	"tensile/graph"
)

func graphOrder(g *graph.Graph) []graph.OpID {
	order := make([]graph.OpID, len(g.Ops))
	for i := range order {
		order[i] = graph.OpID(i)
	}
	return order
}

// shuffled returns a random order in which every op still finds the versions that it reads: after what makes them, and
// before what overwrites them.
func shuffled(rng *rand.Rand, g *graph.Graph) []graph.OpID {
	before := make([]int, len(g.Ops)) // how many ops must come first
	after := make([][]graph.OpID, len(g.Ops))
	edge := func(a, b graph.OpID) {
		if a != b {
			before[b]++
			after[a] = append(after[a], b)
		}
	}
	writer := map[version]graph.OpID{}
	for _, op := range g.Ops {
		for _, v := range g.Writes(op.ID) {
			writer[v] = op.ID
		}
	}
	for _, op := range g.Ops {
		for _, v := range g.Reads(op.ID) {
			if made, ok := writer[v]; ok {
				edge(made, op.ID)
			}
			if over, ok := writer[version{Storage: v.Storage, Number: v.Number + 1}]; ok {
				edge(op.ID, over)
			}
		}
	}
	var ready, order []graph.OpID
	for op, n := range before {
		if n == 0 {
			ready = append(ready, graph.OpID(op))
		}
	}
	for len(ready) > 0 {
		i := rng.IntN(len(ready))
		op := ready[i]
		ready[i] = ready[len(ready)-1]
		ready = ready[:len(ready)-1]
		order = append(order, op)
		for _, next := range after[op] {
			if before[next]--; before[next] == 0 {
				ready = append(ready, next)
			}
		}
	}
	return order
}
