package scheduler

import (
	"slices"
	"time"

	"tensile/cost"
	"tensile/graph"
	"tensile/peak"
)

// draft is a plan of one job in the making: steps, what is decided about each gap, and what is booked on its share of the
// link.
//
// Slots are unrolled over the boundary where a gap wraps: slot n+k is slot k of the next iteration.
type draft struct {
	*wiring
	job   *Job
	align graph.Bytes
	steps []step

	gaps []*gap
	head []*gap // per storage: its first gap
	tail []*gap // per storage: its last gap
	slab []gap  // where the next gaps lie

	writes  writes  // by first executions
	lastUse []int32 // per storage: the last slot that touches it, or -1
	curve   *peak.Curve

	starts []time.Duration // per slot, and of the next iteration's first one
	period time.Duration   // of an iteration in which no swap stalls

	out, in              cost.Link
	outs, ins            *lane
	earlyOut, oneChannel bool        // as Options says
	small                graph.Bytes // storages below that are not swapped for their own sake
	meter                *meter
	exact                bool // steps are what they were when the lanes were booked: what is booked takes place as booked

	goal    graph.Bytes // the peak that force aims at
	most    int         // storages that may be swapped; negative: all
	swapped []int32     // per storage: its gaps that are swapped, arrivals left out
	swaps   int         // storages with such a gap
}

// step is one execution of an op.
type step struct {
	op   graph.OpID
	want graph.StorageID // of a recomputation: the storage that it is for; -1 for the first execution
}

// kind says what is decided about a gap.
type kind uint8

const (
	keep kind = iota
	swap
	recompute
)

// gap is the time between two accesses to a storage that follow each other. Where it is not kept, the storage is away
// in the slots drop+1 to in, both included.
type gap struct {
	storage    graph.StorageID
	from, to   int // slots of the accesses; from is -1 for the arrival of an input
	made       int // the slot that made what the storage holds in the gap, below 0 if it was in the iteration before
	kind       kind
	dirty      bool // the storage was written since its gap before, or since the iteration began if it has none
	drop, in   int
	prev, next *gap // of the storage

	send, fetch time.Duration // swaps: when the copies begin, as booked
	copied      bool          // a copy out is booked
	cost        time.Duration // that the decision is expected to cost
}

// arrival reports whether the gap is the arrival of an input, which has to be copied in whatever is decided.
func (x *gap) arrival() bool { return x.from < 0 }

// writes lists per storage the slots of the first executions that make a version of it, ascending.
type writes struct {
	begin []int32
	slots []int32
}

func (w *writes) of(s graph.StorageID) []int32 { return w.slots[w.begin[s]:w.begin[s+1]] }

// firstSteps executes every op once, in this order.
func firstSteps(order []graph.OpID) []step {
	steps := make([]step, len(order))
	for i, op := range order {
		steps[i] = step{op, -1}
	}
	return steps
}

// begin finds the gaps of the steps and frees the lanes.
func (d *draft) begin() {
	d.exact = true
	d.findWrites()
	d.findGaps()
	d.measure()
	d.clear()
	_, peak := d.peak()
	d.small, d.most = d.worthwhile(peak), d.mostSwaps()
}

// touched returns the storages that a step reads or makes. They are read only.
func (d *draft) touched(s step) []graph.StorageID {
	all := d.touches.of(int(s.op))
	made := d.makes.of(int(s.op))
	if s.want < 0 || len(made) == 1 {
		return all
	}
	var some []graph.StorageID
	for _, id := range all {
		if id == s.want || !slices.Contains(made, id) {
			some = append(some, id)
		}
	}
	return some
}

// findWrites notes which first executions write and when each storage is touched last.
func (d *draft) findWrites() {
	n := len(d.g.Storages)
	d.meter.count(n + len(d.touches.all))
	d.writes = writes{make([]int32, n+2), make([]int32, len(d.makes.all))}
	begin := d.writes.begin[1:]
	for _, s := range d.makes.all {
		begin[s+1]++
	}
	for s := range n {
		begin[s+1] += begin[s]
	}
	d.lastUse = slices.Repeat([]int32{-1}, n)
	for slot, step := range d.steps {
		if step.want < 0 {
			for _, s := range d.makes.of(int(step.op)) {
				d.writes.slots[begin[s]] = int32(slot)
				begin[s]++
			}
		}
		for _, s := range d.touched(step) {
			d.lastUse[s] = int32(slot)
		}
	}
}

// findGaps lists the gaps between accesses, all kept but those that end in a recomputation. The arrival of an input is a
// swap that begins at the boundary: it is fetched before slot 0 until something else is decided.
func (d *draft) findGaps() {
	n, storages := len(d.steps), d.g.Storages
	d.meter.count(n + len(d.touches.all))
	d.head, d.tail = make([]*gap, len(storages)), make([]*gap, len(storages))
	d.swapped = make([]int32, len(storages))
	d.gaps = make([]*gap, 0, len(d.touches.all)/2)
	seen := make([]seen, len(storages))
	for slot, step := range d.steps {
		for _, s := range d.touched(step) {
			x := &seen[s]
			switch {
			case x.first == 0:
				x.first = int32(slot + 1)
				if storages[s].Role == graph.Input {
					d.append(gap{storage: s, from: -1, to: slot, made: -1, kind: swap, drop: -1, in: -1})
				}
			case s == step.want:
				d.append(x.gap(s, gap{to: slot, kind: recompute, drop: int(x.last), in: slot - 1}))
				x.made = int32(slot + 1)
			case slot > int(x.last)+1:
				d.append(x.gap(s, gap{to: slot}))
			}
			x.last = int32(slot)
		}
		if step.want < 0 {
			for _, s := range d.makes.of(int(step.op)) {
				seen[s].made, seen[s].dirty = int32(slot+1), true
			}
		}
	}
	for i := range storages {
		x := &seen[i]
		if x.first == 0 || !storages[i].Role.Persistent() {
			continue
		}
		s := graph.StorageID(i)
		if first := int(x.first) - 1; first+n > int(x.last)+1 {
			d.append(x.gap(s, gap{to: first + n}))
		}
		if y := d.head[s]; x.dirty && y != nil {
			y.dirty = true // written after its last gap: the first one of the next iteration finds that
		}
		for y := d.head[s]; y != nil && y.made < 0 && x.made > 0; y = y.next {
			y.made = int(x.made) - 1 - n
		}
	}
}

// seen is what is known of a storage's accesses so far.
type seen struct {
	first, made int32 // the first slot and that of the last content, counted from 1; 0: none
	last        int32 // slot
	dirty       bool  // written since its gap before
}

// gap returns a gap that begins at the last access.
func (x *seen) gap(s graph.StorageID, y gap) gap {
	y.storage, y.from, y.made, y.dirty = s, int(x.last), int(x.made)-1, x.dirty
	x.dirty = false
	return y
}

// append adds the last gap of its storage.
func (d *draft) append(x gap) {
	const chunk = 512
	if len(d.slab) == cap(d.slab) {
		d.slab = make([]gap, 0, min(chunk, 16+len(d.steps)/2))
	}
	d.slab = append(d.slab, x)
	y := &d.slab[len(d.slab)-1]
	d.gaps = append(d.gaps, y)
	if y.prev = d.tail[x.storage]; y.prev != nil {
		y.prev.next = y
	} else {
		d.head[x.storage] = y
	}
	d.tail[x.storage] = y
}

// covers returns the slot as the gap counts it, between its accesses, and whether it lies there.
func (d *draft) covers(x *gap, slot int) (int, bool) {
	if x.from < slot && slot < x.to {
		return slot, true
	}
	slot += len(d.steps)
	return slot, x.from < slot && slot < x.to
}

// away reports whether the gap frees an unrolled slot.
func (x *gap) away(slot int) bool { return x.kind != keep && x.drop < slot && slot <= x.in }

// set decides a gap and keeps the footprint right.
func (d *draft) set(x *gap, k kind, drop, in int) {
	if x.kind != keep {
		d.add(x.storage, x.drop+1, x.in, 1)
	}
	d.count(x, -1)
	x.kind, x.drop, x.in = k, drop, in
	d.count(x, 1)
	if x.kind != keep {
		d.add(x.storage, x.drop+1, x.in, -1)
	}
}

// count keeps account of the storages that are swapped.
func (d *draft) count(x *gap, by int32) {
	if x.kind != swap || x.arrival() {
		return
	}
	before := d.swapped[x.storage]
	d.swapped[x.storage] += by
	switch after := before + by; {
	case before == 0 && after > 0:
		d.swaps++
	case before > 0 && after == 0:
		d.swaps--
	}
}

// clean reports whether a valid host copy exists in a gap by what is decided so far: since the storage was last
// written, another gap of it was swapped, or it is not written at all.
func (d *draft) clean(x *gap) bool {
	if x.arrival() {
		return true // it has arrived from the host
	}
	if made := d.writes.of(x.storage); d.g.Storages[x.storage].Role == graph.Output && x.from >= int(made[len(made)-1]) {
		return true // the last version of an output goes out where it is made
	}
	for y := x; !y.dirty; {
		if y.prev != nil {
			y = y.prev
		} else if !d.g.Storages[x.storage].Role.Persistent() {
			return y.arrival()
		} else {
			y = d.tail[x.storage]
		}
		if y == x || y.kind == swap {
			return true
		}
	}
	return false
}

// clone returns a copy whose gaps can be changed without an effect on the original. It shares the lanes.
func (d *draft) clone() *draft {
	d.meter.count(len(d.steps) + len(d.gaps))
	c := *d
	c.gaps, c.slab = make([]*gap, 0, len(d.gaps)), make([]gap, 0, len(d.gaps))
	c.head, c.tail = make([]*gap, len(d.head)), make([]*gap, len(d.tail))
	for s := range d.head {
		for x := d.head[s]; x != nil; x = x.next {
			y := *x
			y.next = nil
			c.append(y)
		}
	}
	c.swapped = slices.Clone(d.swapped)
	c.curve = d.curve.Clone()
	c.steps = slices.Clone(d.steps)
	return &c
}
