package draft

import (
	"cmp"
	"slices"

	"tensile/graph"
)

// GraphOrder executes every op once, in the order of the graph.
func GraphOrder(g *graph.Graph) []graph.OpID {
	order := make([]graph.OpID, len(g.Ops))
	for i := range order {
		order[i] = graph.OpID(i)
	}
	return order
}

// EarlyUpdates moves every op of the optimizer to the first place where it may stand: after what makes its inputs,
// updates of other parts of the same parameter among that, and after the last reader of what it overwrites. Where an
// update has to wait for that reader, and its gradient is larger than what making it sets free, the gradient is made
// just before the update. So gradients live for a step or two.
func EarlyUpdates(g *graph.Graph) []graph.OpID { return earlyUpdates(g, nil) }

// GraphOrder is the function of that name for job i.
func (s *Session) GraphOrder(i int) []graph.OpID { return GraphOrder(s.Request.Jobs[i].Graph) }

// EarlyUpdates is the function of that name for job i, with the updates of the parts of a parameter apart: see pace.
func (s *Session) EarlyUpdates(i int) []graph.OpID {
	out, in := s.Links(i)
	return earlyUpdates(s.Request.Jobs[i].Graph, &pace{s.Request.Jobs[i].Latency, out, in})
}

// earlyUpdates leaves no time between updates without a pace.
func earlyUpdates(g *graph.Graph, p *pace) []graph.OpID {
	if g.Opaque() {
		return GraphOrder(g) // a script runs its ops as it does
	}
	d := dependencies(g)
	first := graph.OpID(len(g.Ops))
	for i := range g.Ops {
		if g.Ops[i].Phase == graph.Optimize {
			first = graph.OpID(i)
			break
		}
	}
	anchors := make([]graph.OpID, 0, len(g.Ops)-int(first)) // of updates
	for i := range g.Ops[first:] {
		op := &g.Ops[int(first)+i]
		anchor := d.anchor(op.ID, anchors)
		if op.Phase != graph.Optimize || anchor == graph.NoOp || anchor >= first {
			return GraphOrder(g) // the optimizer is not a last phase of independent updates: leave the order
		}
		anchors = append(anchors, anchor)
	}
	if g.Replicas() > 1 {
		return reducedFirst(d, first)
	}
	if p != nil {
		p.spreadAnchors(d, first, anchors)
	}
	following := make([][]graph.OpID, first) // per op: what is moved to just after it
	moved := make([]bool, first)
	for i, anchor := range anchors {
		update := first + graph.OpID(i)
		for _, p := range d.gradients(update) {
			if p < anchor && !moved[p] && following[p] == nil && d.movable(p, anchor, update) {
				moved[p] = true
				following[anchor] = append(following[anchor], p)
			}
		}
		following[anchor] = append(following[anchor], update)
	}
	order := make([]graph.OpID, 0, len(g.Ops))
	for op := range first {
		if !moved[op] {
			order = append(order, op)
		}
		order = append(order, following[op]...)
	}
	return order
}

// reducedFirst leaves the updates of a replica behind the backward pass, those first whose gradients are reduced first.
// One just behind its all-reduce would have the ops after it wait for the network.
func reducedFirst(d *uses, first graph.OpID) []graph.OpID {
	reduced := func(update graph.OpID) graph.OpID {
		last := graph.NoOp
		for _, c := range d.reads.list(int(update)) {
			if w := d.writer[c]; w != graph.NoOp && d.g.Ops[w].Kind == graph.AllReduce {
				last = max(last, w)
			}
		}
		return last
	}
	order := GraphOrder(d.g)
	slices.SortStableFunc(order[first:], func(a, b graph.OpID) int { return cmp.Compare(reduced(a), reduced(b)) })
	return order
}

// uses says which ops make and read each content.
type uses struct {
	g       *graph.Graph
	first   []int32      // per storage: the number of its version 0 among all contents
	writer  []graph.OpID // per content, or NoOp
	reads   lists[int32] // per op: contents, each once
	readers lists[graph.OpID]
}

// lists is a list of lists in one piece.
type lists[T any] struct {
	begin []int32
	all   []T
}

func (l *lists[T]) list(i int) []T { return l.all[l.begin[i]:l.begin[i+1]] }

// close ends the present list.
func (l *lists[T]) close() { l.begin = append(l.begin, int32(len(l.all))) }

func newLists[T any](n, size int) lists[T] {
	return lists[T]{append(make([]int32, 0, n+1), 0), make([]T, 0, size)}
}

func dependencies(g *graph.Graph) *uses {
	d := &uses{g: g, first: make([]int32, len(g.Storages)+1)}
	for s, last := range g.LastVersions() {
		d.first[s+1] = d.first[s] + int32(last) + 2 // one more, so that each has a next one
	}
	contents := int(d.first[len(g.Storages)])
	d.writer = slices.Repeat([]graph.OpID{graph.NoOp}, contents)
	d.reads = newLists[int32](len(g.Ops), 4*len(g.Ops))
	count := make([]int32, contents+1)
	for i := range g.Ops {
		for _, t := range g.Ops[i].Outputs {
			d.writer[d.content(t)] = graph.OpID(i)
		}
	}
	for i := range g.Ops {
		d.listReads(graph.OpID(i))
		for _, c := range d.reads.list(i) {
			if d.writer[c+1] != graph.OpID(i) {
				count[c+1]++
			}
		}
	}
	for c := range contents {
		count[c+1] += count[c]
	}
	d.readers = lists[graph.OpID]{slices.Clone(count), make([]graph.OpID, count[contents])}
	for i := range g.Ops {
		for _, c := range d.reads.list(i) {
			if d.writer[c+1] != graph.OpID(i) { // those that overwrite it are left out
				d.readers.all[count[c]] = graph.OpID(i)
				count[c]++
			}
		}
	}
	return d
}

// listReads appends what an op reads, as graph.Reads says.
func (d *uses) listReads(op graph.OpID) {
	from := len(d.reads.all)
	add := func(c int32) {
		if !slices.Contains(d.reads.all[from:], c) {
			d.reads.all = append(d.reads.all, c)
		}
	}
	for _, t := range d.g.Ops[op].Inputs {
		add(d.content(t))
	}
	for i, t := range d.g.Ops[op].Outputs {
		if !d.g.Fresh(op, i) {
			add(d.content(t) - 1)
		}
	}
	d.reads.close()
}

func (d *uses) content(t graph.TensorID) int32 {
	tensor := &d.g.Tensors[t]
	return d.first[tensor.Storage] + int32(tensor.Version)
}

// anchor returns the last op that must come before an update, or NoOp. An update of another part of the same storage
// does not count, only what that comes after: anchors has the anchors of the updates before this one, and those that
// share one are placed in their order.
func (d *uses) anchor(update graph.OpID, anchors []graph.OpID) graph.OpID {
	anchor, first := graph.NoOp, update-graph.OpID(len(anchors))
	part := d.overwrittenPart(update)
	for _, c := range d.reads.list(int(update)) {
		w := d.writer[c]
		if w >= first && part != nil && d.g.Tensors[d.g.Ops[w].Outputs[0]].Storage == part.Storage {
			w = anchors[w-first]
		}
		anchor = max(anchor, w)
	}
	for _, t := range d.g.Ops[update].Outputs {
		if d.g.Tensors[t].Version == 0 {
			continue
		}
		for _, r := range d.readers.list(int(d.content(t) - 1)) {
			anchor = max(anchor, r)
		}
	}
	return anchor
}

// overwrittenPart returns what an update overwrites of a parameter, or nil if that is all of it.
func (d *uses) overwrittenPart(update graph.OpID) *graph.Tensor {
	w := &d.g.Tensors[d.g.Ops[update].Outputs[0]]
	if w.Bytes() == d.g.Storages[w.Storage].Bytes {
		return nil
	}
	return w
}

// gradients returns the ops whose only output is read by the update alone.
func (d *uses) gradients(update graph.OpID) []graph.OpID {
	var ops []graph.OpID
	for _, c := range d.reads.list(int(update)) {
		p := d.writer[c]
		if readers := d.readers.list(int(c)); p != graph.NoOp && len(d.g.Ops[p].Outputs) == 1 && d.g.Pure(p) &&
			len(readers) == 1 && readers[0] == update {
			ops = append(ops, p)
		}
	}
	return ops
}

// movable reports whether op may be executed after a later op, just before the update that reads its output, and
// whether that keeps less memory in between: its output is larger than the storages that it is the last to read, or
// those of all parts together if the update is of a part of a parameter. What it reads may be overwritten by that
// update alone, since others may have moved to an earlier place.
func (d *uses) movable(op, after, update graph.OpID) bool {
	size := d.g.Storages[d.g.Tensors[d.g.Ops[op].Outputs[0]].Storage].Bytes
	parts := graph.Bytes(1)
	if part := d.overwrittenPart(update); part != nil {
		size = d.g.Storages[part.Storage].Bytes
		parts = (size + part.Bytes() - 1) / part.Bytes()
	}
	var kept graph.Bytes
	for _, t := range d.g.Ops[op].Inputs {
		c := d.content(t)
		last := op
		readers := d.readers.list(int(c))
		for _, reader := range readers {
			last = max(last, reader)
		}
		storage := &d.g.Storages[d.g.Tensors[t].Storage]
		if w := d.writer[c+1]; w != graph.NoOp && w != update {
			return false
		} else if !storage.Role.Persistent() && last <= after {
			if len(readers) == 1 { // the others have one like it
				kept += (parts - 1) * storage.Bytes
			}
			kept += storage.Bytes
		}
	}
	return size > kept
}
