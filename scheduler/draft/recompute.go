package draft

import (
	"slices"

	"tensile/graph"
	"tensile/plan"
)

// RecomputeAt returns the recomputation of a kept gap, if it is possible: the storage has one version, made by a pure
// op, and where it is needed again every input of that op is on the device, unchanged, or can be prefetched. The paper
// excludes inputs that were released (TENSILE, IV-D); prefetching them a few steps earlier costs no time.
func (d *Draft) RecomputeAt(x *Gap) (Remedy, bool) {
	role := d.g.Storages[x.storage].Role
	made := d.writes.slotsOf(x.storage)
	if x.kind != keep || x.dies || role.FromHost() || role == graph.Output || len(made) != 1 ||
		!d.MayLeave(x.storage) {
		return Remedy{}, false
	}
	op := d.steps[made[0]].Op
	if !d.pure[op] {
		return Remedy{}, false
	}
	for _, s := range d.touches.list(int(op)) {
		if !slices.Contains(d.makes.list(int(op)), s) && !d.unchanged(s, int(made[0]), x.to) {
			return Remedy{}, false
		}
	}
	return Remedy{Gap: x, Kind: recompute, Cost: d.latency[op]}, true
}

// unchanged reports whether a storage is on the device just before slot to, and has not been written after slot from.
func (d *Draft) unchanged(s graph.StorageID, from, to int) bool {
	if slices.ContainsFunc(d.writes.slotsOf(s), func(slot int32) bool { return from < int(slot) && int(slot) < to }) {
		return false
	}
	for y := d.head[s]; y != nil; y = y.next {
		if y.kind == recompute && y.from < to && to <= y.to {
			return false
		}
	}
	return d.g.Storages[s].Role.Persistent() || to <= int(d.lastUse[s])
}

// recompute inserts a second execution just before the gap's second access. The gap then ends there, and the op's
// inputs have one more access. From then on the bookings on the lanes are only approximate.
func (d *Draft) recompute(r Remedy) {
	x := r.Gap
	at := x.to
	again := Step{Op: d.steps[d.writes.slotsOf(x.storage)[0]].Op, Want: x.storage}
	d.exact = false
	d.shift(at)
	d.steps = slices.Insert(d.steps, at, again)
	x.kind, x.to, x.drop, x.in, x.cost = recompute, at, d.leaves(x.storage, x.from, at), at-1, r.Cost
	for _, s := range d.Touched(again) {
		if s != x.storage {
			d.split(s, at)
		}
	}
	d.findWrites()
	d.measure()
}

// shift makes room for a step in a slot: whatever lies there or later moves on by one.
func (d *Draft) shift(at int) {
	n := len(d.steps)
	d.meter.count(n + 2*len(d.gaps))
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
		switch {
		case x.made >= at:
			x.made++
		case x.made < 0 && x.made+n < at: // it counts from the end of the iteration before, which is one step longer
			x.made--
		}
		if x.dies { // with the slot before
			x.to = moved(x.to-1) + 1
		} else {
			x.to = moved(x.to)
		}
		x.from, x.drop, x.in = moved(x.from), moved(x.drop), moved(x.in)
	}
}

// split divides the gap of a storage that covers a slot at an access there. A swap fetches the storage for the new
// access; one that has not dropped it by then becomes the swap of the second part.
func (d *Draft) split(s graph.StorageID, at int) {
	x := d.head[s]
	for x != nil && !(x.from < at && at < x.to) {
		x = x.next
	}
	if x == nil {
		return
	}
	d.countSwap(x, -1)
	second := *x
	second.from, second.dirty = at, false
	x.dies = false
	if x.to = at; x.kind == swap && x.drop < at-1 {
		x.in = min(x.in, at-1)
		second.kind, second.cost = keep, 0
	} else {
		x.kind, x.cost = keep, 0
		if second.drop = max(second.drop, at); second.drop >= second.in {
			second.kind = keep
		}
	}
	d.countSwap(x, 1)
	if second.from+1 < second.to {
		d.insertAfter(x, second)
	}
	if x.from+1 >= x.to {
		if x.next != nil && x.next.from == at {
			x.next.dirty = x.dirty
		}
		d.remove(x)
	}
}

// insertAfter inserts a gap behind another of its storage.
func (d *Draft) insertAfter(x *Gap, second Gap) {
	y := &second
	d.gaps = append(d.gaps, y)
	if y.prev, y.next = x, x.next; y.next != nil {
		y.next.prev = y
	} else {
		d.tail[x.storage] = y
	}
	x.next = y
	d.countSwap(y, 1)
}

func (d *Draft) remove(x *Gap) {
	d.meter.count(len(d.gaps))
	d.countSwap(x, -1)
	d.gaps = slices.DeleteFunc(d.gaps, func(y *Gap) bool { return y == x })
	if x.prev != nil {
		x.prev.next = x.next
	} else {
		d.head[x.storage] = x.next
	}
	if x.next != nil {
		x.next.prev = x.prev
	} else {
		d.tail[x.storage] = x.prev
	}
}

// outputsIn returns the set of outputs of an op that lie in a storage.
func outputsIn(g *graph.Graph, op graph.OpID, s graph.StorageID) plan.Outputs {
	var set plan.Outputs
	for i, t := range g.Ops[op].Outputs {
		if g.Tensors[t].Storage == s {
			set |= 1 << i
		}
	}
	return set
}
