package scheduler

import "tensile/graph"

// graphOrder executes every op once, in the order of the graph.
func graphOrder(g *graph.Graph) []graph.OpID {
	order := make([]graph.OpID, len(g.Ops))
	for i := range order {
		order[i] = graph.OpID(i)
	}
	return order
}

// earlyUpdates moves every op of the optimizer to the first place where it may stand: after what makes its inputs and
// after the last reader of what it overwrites. Gradients are then free soon after they are made.
func earlyUpdates(g *graph.Graph) []graph.OpID {
	writer := make(map[graph.Version]graph.OpID)
	reader := make(map[graph.Version]graph.OpID) // the last one, who does not overwrite it
	for _, op := range g.Ops {
		for _, w := range g.Writes(op.ID) {
			writer[w] = op.ID
		}
		for _, r := range g.Reads(op.ID) {
			if w, ok := writer[graph.Version{Storage: r.Storage, Number: r.Number + 1}]; !ok || w != op.ID {
				reader[r] = op.ID
			}
		}
	}
	following := make([][]graph.OpID, len(g.Ops))
	var order []graph.OpID
	var place func(op graph.OpID)
	place = func(op graph.OpID) {
		order = append(order, op)
		for _, next := range following[op] {
			place(next)
		}
	}
	first := graph.OpID(len(g.Ops))
	for _, op := range g.Ops {
		if op.Phase == graph.Optimize {
			first = min(first, op.ID)
		}
	}
	for _, op := range g.Ops[first:] {
		if op.Phase != graph.Optimize {
			return graphOrder(g) // the optimizer is not a last phase: leave it
		}
		anchor := graph.NoOp
		for _, r := range g.Reads(op.ID) {
			if w, ok := writer[r]; ok {
				anchor = max(anchor, w)
			}
		}
		for _, w := range g.Writes(op.ID) {
			if r, ok := reader[graph.Version{Storage: w.Storage, Number: w.Number - 1}]; ok {
				anchor = max(anchor, r)
			}
		}
		if anchor == graph.NoOp {
			return graphOrder(g)
		}
		following[anchor] = append(following[anchor], op.ID)
	}
	for op := range first {
		place(op)
	}
	return order
}
