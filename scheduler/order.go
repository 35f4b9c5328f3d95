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
// after the last reader of what it overwrites. Where an update has to wait for that reader, and its gradient is larger
// than what making it sets free, the gradient is made just before the update. So gradients live for a step or two.
func earlyUpdates(g *graph.Graph) []graph.OpID {
	d := dependencies(g)
	first := graph.OpID(len(g.Ops))
	for _, op := range g.Ops {
		if op.Phase == graph.Optimize {
			first = min(first, op.ID)
		}
	}
	following := make([][]graph.OpID, first) // per op: what is moved to just after it
	moved := make([]bool, first)
	for _, op := range g.Ops[first:] {
		anchor := d.anchor(op.ID)
		if op.Phase != graph.Optimize || anchor == graph.NoOp || anchor >= first {
			return graphOrder(g) // the optimizer is not a last phase of independent updates: leave the order
		}
		for _, p := range d.gradients(op.ID) {
			if p < anchor && !moved[p] && following[p] == nil && d.movable(p, anchor, op.ID) {
				moved[p] = true
				following[anchor] = append(following[anchor], p)
			}
		}
		following[anchor] = append(following[anchor], op.ID)
	}
	var order []graph.OpID
	for op := range first {
		if !moved[op] {
			order = append(order, op)
		}
		order = append(order, following[op]...)
	}
	return order
}

// uses says which ops make and read each content.
type uses struct {
	g       *graph.Graph
	writer  map[graph.Version]graph.OpID
	readers map[graph.Version][]graph.OpID // those that overwrite it left out
}

func dependencies(g *graph.Graph) *uses {
	d := &uses{g, make(map[graph.Version]graph.OpID), make(map[graph.Version][]graph.OpID)}
	for _, op := range g.Ops {
		for _, w := range g.Writes(op.ID) {
			d.writer[w] = op.ID
		}
	}
	for _, op := range g.Ops {
		for _, r := range g.Reads(op.ID) {
			if w, ok := d.writer[next(r)]; !ok || w != op.ID {
				d.readers[r] = append(d.readers[r], op.ID)
			}
		}
	}
	return d
}

func next(v graph.Version) graph.Version {
	return graph.Version{Storage: v.Storage, Number: v.Number + 1}
}

// anchor returns the last op that must come before an update, or NoOp.
func (d *uses) anchor(update graph.OpID) graph.OpID {
	anchor := graph.NoOp
	for _, r := range d.g.Reads(update) {
		if w, ok := d.writer[r]; ok {
			anchor = max(anchor, w)
		}
	}
	for _, w := range d.g.Writes(update) {
		for _, r := range d.readers[graph.Version{Storage: w.Storage, Number: w.Number - 1}] {
			anchor = max(anchor, r)
		}
	}
	return anchor
}

// gradients returns the ops whose only output is read by the update alone.
func (d *uses) gradients(update graph.OpID) []graph.OpID {
	var ops []graph.OpID
	for _, r := range d.g.Reads(update) {
		p, ok := d.writer[r]
		if readers := d.readers[r]; ok && len(d.g.Ops[p].Outputs) == 1 && d.g.Pure(p) && len(readers) == 1 && readers[0] == update {
			ops = append(ops, p)
		}
	}
	return ops
}

// movable reports whether op may be executed after a later op, just before the update that reads its output, and whether
// that keeps less memory in between: its output is larger than the storages that it is the last to read. What it reads
// may be overwritten by that update alone, since others may have moved to an earlier place.
func (d *uses) movable(op, after, update graph.OpID) bool {
	var kept graph.Bytes
	for _, r := range d.g.Reads(op) {
		last := op
		for _, reader := range d.readers[r] {
			last = max(last, reader)
		}
		storage := d.g.Storages[r.Storage]
		if w, ok := d.writer[next(r)]; ok && w != update {
			return false
		} else if !storage.Role.Persistent() && last <= after {
			kept += storage.Bytes
		}
	}
	return d.g.Storages[d.g.Tensors[d.g.Ops[op].Outputs[0]].Storage].Bytes > kept
}
