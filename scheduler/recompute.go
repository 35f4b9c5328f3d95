package scheduler

import (
	"slices"

	"tensile/graph"
	"tensile/plan"
)

// recomputeAt is the recomputation of a kept gap, if it is possible: the storage has one version, made by a pure op, and
// every input of that op is on the device, unchanged, where the storage is needed again, or can be fetched for it. The
// paper leaves inputs that were released out (TENSILE, IV-D); fetching them a few steps earlier costs no time.
func (d *draft) recomputeAt(x *gap) (remedy, bool) {
	g := d.job.Graph
	role := g.Storages[x.storage].Role
	if x.kind != keep || role.FromHost() || role == graph.Output || len(d.writeSlots[x.storage]) != 1 {
		return remedy{}, false
	}
	made := d.writeSlots[x.storage][0]
	op := d.steps[made].op
	if !g.Pure(op) {
		return remedy{}, false
	}
	for _, s := range d.touches[op] {
		if !slices.Contains(d.made[op], s) && !d.unchanged(s, made, x.to) {
			return remedy{}, false
		}
	}
	return remedy{gap: x, kind: recompute, cost: d.job.Latency[op]}, true
}

// unchanged reports whether a storage is on the device just before slot to, and has not been written after slot from.
func (d *draft) unchanged(s graph.StorageID, from, to int) bool {
	if slices.ContainsFunc(d.writeSlots[s], func(slot int) bool { return from < slot && slot < to }) {
		return false
	}
	if slices.ContainsFunc(d.of[s], func(y *gap) bool { return y.kind == recompute && y.from < to && to <= y.to }) {
		return false
	}
	return d.job.Graph.Storages[s].Role.Persistent() || to <= d.lastUse[s]
}

// recompute inserts a second execution just before the gap's second access. The gap then ends there, and the op's
// inputs have an access more.
func (d *draft) recompute(r remedy) {
	x := r.gap
	at := x.to
	again := step{d.steps[d.writeSlots[x.storage][0]].op, x.storage}
	d.shift(at)
	d.steps = slices.Insert(d.steps, at, again)
	x.kind, x.to, x.drop, x.in, x.cost = recompute, at, x.from, at-1, r.cost
	for _, s := range d.touched(again) {
		if s != x.storage {
			d.split(s, at)
		}
	}
	d.measure()
}

// shift makes room for a step in a slot: whatever lies there or later moves on by one.
func (d *draft) shift(at int) {
	n := len(d.steps)
	moved := func(slot int) int {
		switch {
		case slot >= n && slot-n >= at:
			return slot + 2
		case slot >= n, slot >= at:
			return slot + 1
		}
		return slot
	}
	for _, x := range d.gaps {
		x.from, x.to, x.drop, x.in = moved(x.from), moved(x.to), moved(x.drop), moved(x.in)
	}
}

// split divides the gap of a storage that covers a slot at an access there. A swap fetches the storage for the new
// access; one that has not dropped it by then becomes the swap of the second part.
func (d *draft) split(s graph.StorageID, at int) {
	i := slices.IndexFunc(d.of[s], func(x *gap) bool { return x.from < at && at < x.to })
	if i < 0 {
		return
	}
	x := d.of[s][i]
	second := *x
	second.from, second.dirty, second.stuck = at, false, false
	if x.to = at; x.kind == swap && x.drop < at-1 {
		x.in = min(x.in, at-1)
		second.kind, second.cost = keep, 0
	} else {
		x.kind, x.cost = keep, 0
		if second.drop = max(second.drop, at); second.drop >= second.in {
			second.kind = keep
		}
	}
	if second.from+1 < second.to {
		d.gaps = append(d.gaps, &second)
		d.of[s] = slices.Insert(d.of[s], i+1, &second)
	}
	if x.from+1 >= x.to {
		second.dirty = x.dirty
		d.remove(x)
	}
}

func (d *draft) remove(x *gap) {
	same := func(y *gap) bool { return y == x }
	d.gaps = slices.DeleteFunc(d.gaps, same)
	d.of[x.storage] = slices.DeleteFunc(d.of[x.storage], same)
}

// wanted returns the set of outputs of an op that lie in a storage.
func wanted(g *graph.Graph, op graph.OpID, s graph.StorageID) plan.Outputs {
	var set plan.Outputs
	for i, t := range g.Ops[op].Outputs {
		if g.Tensors[t].Storage == s {
			set |= 1 << i
		}
	}
	return set
}
