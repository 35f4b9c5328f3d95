package scheduler

import (
	"slices"
	"time"

	"tensile/graph"
)

// draft is a plan of one job in the making: steps, and what is decided about each gap.
//
// Slots are unrolled over the boundary where a gap wraps: slot n+k is slot k of the next iteration.
type draft struct {
	job        *Job
	align      graph.Bytes
	steps      []step
	gaps       []*gap
	of         [][]*gap      // per storage, ascending
	slots      []graph.Bytes // footprint
	writeSlots [][]int       // per storage: slots of the first executions that make a version of it
	lastUse    []int         // per storage: the last slot that touches it, or -1

	starts  []time.Duration
	total   time.Duration       // of all steps, without stalls
	touches [][]graph.StorageID // per op: what it reads or makes
	made    [][]graph.StorageID // per op
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
	storage  graph.StorageID
	from, to int // slots of the accesses; from is -1 for the arrival of an input
	kind     kind
	drop, in int
	dirty    bool          // the storage was written since its gap before, or since the iteration began if it has none
	stuck    bool          // a swap without stall was tried in vain
	cost     time.Duration // that the decision is expected to cost
}

func newDraft(j *Job, order []graph.OpID, align graph.Bytes) *draft {
	d := &draft{job: j, align: align}
	for _, op := range j.Graph.Ops {
		d.touches = append(d.touches, j.Graph.Touches(op.ID))
		var made []graph.StorageID
		for _, w := range j.Graph.Writes(op.ID) {
			made = append(made, w.Storage)
		}
		d.made = append(d.made, made)
	}
	for _, op := range order {
		d.steps = append(d.steps, step{op, -1})
	}
	d.findGaps()
	d.measure()
	return d
}

// touched returns the storages that a step reads or makes.
func (d *draft) touched(s step) []graph.StorageID {
	all := d.touches[s.op]
	if s.want < 0 {
		return all
	}
	return slices.DeleteFunc(slices.Clone(all), func(id graph.StorageID) bool {
		return id != s.want && slices.Contains(d.made[s.op], id)
	})
}

// findGaps lists the gaps of the first executions, all kept. The arrival of an input is a swap that begins at the
// boundary: it is fetched before slot 0 until something else is decided.
func (d *draft) findGaps() {
	g := d.job.Graph
	n := len(d.steps)
	d.of = make([][]*gap, len(g.Storages))
	first := slices.Repeat([]int{-1}, len(g.Storages))
	last := slices.Clone(first)
	dirty := make([]bool, len(g.Storages))
	add := func(x *gap) {
		x.dirty, dirty[x.storage] = dirty[x.storage], false
		d.gaps = append(d.gaps, x)
		d.of[x.storage] = append(d.of[x.storage], x)
	}
	for slot, step := range d.steps {
		for _, s := range d.touches[step.op] {
			switch {
			case first[s] < 0:
				first[s] = slot
				if g.Storages[s].Role == graph.Input {
					add(&gap{storage: s, from: -1, to: slot, kind: swap, drop: -1, in: -1})
				}
			case slot > last[s]+1:
				add(&gap{storage: s, from: last[s], to: slot})
			}
			last[s] = slot
			dirty[s] = dirty[s] || d.writes(step, s)
		}
	}
	for _, s := range g.Storages {
		if !s.Role.Persistent() || first[s.ID] < 0 {
			continue
		}
		if first[s.ID]+n > last[s.ID]+1 {
			add(&gap{storage: s.ID, from: last[s.ID], to: first[s.ID] + n})
		}
		if gaps := d.of[s.ID]; dirty[s.ID] && len(gaps) > 0 {
			gaps[0].dirty = true // written after its last gap: the first one of the next iteration finds that
		}
	}
}

// measure computes step times and footprint anew.
func (d *draft) measure() {
	n := len(d.steps)
	d.starts = make([]time.Duration, n+1)
	for slot, s := range d.steps {
		d.starts[slot+1] = d.starts[slot] + d.job.Latency[s.op]
	}
	d.total = d.starts[n]

	g := d.job.Graph
	change := make([]graph.Bytes, 2*n+1) // of the footprint, in unrolled slots
	occupy := func(s graph.StorageID, from, to int, sign graph.Bytes) {
		change[from] += sign * d.size(s)
		change[to+1] -= sign * d.size(s)
	}
	d.writeSlots = make([][]int, len(g.Storages))
	d.lastUse = slices.Repeat([]int{-1}, len(g.Storages))
	for slot, step := range d.steps {
		for _, s := range d.touched(step) {
			d.lastUse[s] = slot
		}
		if step.want < 0 {
			for _, s := range d.made[step.op] {
				d.writeSlots[s] = append(d.writeSlots[s], slot)
			}
		}
	}
	for _, s := range g.Storages {
		switch last := d.lastUse[s.ID]; {
		case last < 0:
		case s.Role.Persistent():
			occupy(s.ID, 0, n-1, 1)
		case s.Role == graph.Input:
			occupy(s.ID, 0, last, 1)
		default:
			occupy(s.ID, d.writeSlots[s.ID][0], last, 1)
		}
	}
	for _, x := range d.gaps {
		if x.kind != keep {
			occupy(x.storage, x.drop+1, x.in, -1)
		}
	}
	d.slots = make([]graph.Bytes, n)
	var now graph.Bytes
	for slot, c := range change[:2*n] {
		now += c
		d.slots[slot%n] += now
	}
	for slot, step := range d.steps {
		d.slots[slot] += rounded(d.job.Scratch[step.op], d.align)
	}
}

// add adds sign times a storage's bytes to the slots from to to, both included and unrolled.
func (d *draft) add(s graph.StorageID, from, to int, sign graph.Bytes) {
	n := len(d.slots)
	bytes := sign * d.size(s)
	for slot := from; slot <= to; slot++ {
		d.slots[slot%n] += bytes
	}
}

func (d *draft) size(s graph.StorageID) graph.Bytes {
	return rounded(d.job.Graph.Storages[s].Bytes, d.align)
}

// peak returns the first slot with the largest footprint.
func (d *draft) peak() (slot int, bytes graph.Bytes) {
	for i, b := range d.slots {
		if b > bytes {
			slot, bytes = i, b
		}
	}
	return slot, bytes
}

// start and end return the planned times of an unrolled slot.
func (d *draft) start(slot int) time.Duration {
	n := len(d.steps)
	return d.starts[slot%n] + time.Duration(slot/n)*d.total
}

func (d *draft) end(slot int) time.Duration {
	if slot < 0 {
		return 0
	}
	return d.start(slot) + d.job.Latency[d.steps[slot%len(d.steps)].op]
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
	x.kind, x.drop, x.in = k, drop, in
	d.add(x.storage, x.drop+1, x.in, -1)
}

// clean reports whether a valid host copy exists in a gap by what is decided so far: since the storage was last
// written, another gap of it was swapped, or it is not written at all.
func (d *draft) clean(x *gap) bool {
	if x.from < 0 {
		return true // an input has arrived from the host
	}
	if made := d.writeSlots[x.storage]; d.job.Graph.Storages[x.storage].Role == graph.Output && x.from >= made[len(made)-1] {
		return true // the last version of an output goes out where it is made
	}
	gaps := d.of[x.storage]
	at := slices.Index(gaps, x)
	for y := x; !y.dirty; {
		if at--; at < 0 {
			if !d.job.Graph.Storages[x.storage].Role.Persistent() {
				return y.from < 0
			}
			at = len(gaps) - 1
		}
		if y = gaps[at]; y == x || y.kind == swap {
			return true
		}
	}
	return false
}

// writes reports whether a step makes a version of a storage.
func (d *draft) writes(step step, s graph.StorageID) bool {
	return (step.want < 0 || step.want == s) && slices.Contains(d.made[step.op], s)
}

// clone returns a copy whose gaps can be changed without an effect on the original.
func (d *draft) clone() *draft {
	c := *d
	c.gaps = make([]*gap, 0, len(d.gaps))
	c.of = make([][]*gap, len(d.of))
	for s, gaps := range d.of {
		for _, x := range gaps {
			y := *x
			c.of[s] = append(c.of[s], &y)
			c.gaps = append(c.gaps, &y)
		}
	}
	c.slots = slices.Clone(d.slots)
	c.steps = slices.Clone(d.steps)
	return &c
}
