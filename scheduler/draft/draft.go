package draft

import (
	"slices"
	"time"

	"tensile/graph"
	"tensile/peak"
	"tensile/scheduler"
)

// Draft is a plan of one job in the making: steps, what is decided about each gap, and what is booked on its share of
// the link. A session begins it. See the package comment for its invariants.
//
// Slots are unrolled over the boundary where a gap wraps: slot n+k is slot k of the next iteration.
type Draft struct {
	// wiring is the graph.
	*wiring
	// job is the job that is planned.
	job *scheduler.Job
	// copies is how many equal jobs the draft stands for.
	copies graph.Bytes
	// chosen are the variants of the graph's ops.
	*chosen
	// align is the alignment of offsets, in bytes.
	align graph.Bytes
	// style is how the policy plans.
	style Style
	// meter counts the work.
	meter *meter

	// steps are the steps of the plan in the making.
	steps []Step
	// accesses are those of the steps to storages.
	accesses
	// times are when the steps run.
	times
	// gapLists are the gaps between the accesses.
	gapLists
	// lanes are the copies that are booked for the gaps.
	lanes
	// swapLimit is how many storages may be swapped.
	swapLimit
	// host is the host memory of the draft and those beside it; nil: no limit.
	host *account
	// curve is the footprint.
	curve *peak.Curve
	// small is the size in bytes below which a storage is not swapped for its own sake.
	small graph.Bytes
	// base is what stays on the device from one iteration to the next, in bytes.
	base graph.Bytes
	// beside is what one of the other jobs may need above its base, in bytes; 0: jobs share no memory.
	beside graph.Bytes
}

// Style is how a policy has its drafts made. The zero value is the recommended one.
type Style struct {
	LateOut    bool // copy out after the access before the gap, not as soon as the content is made
	OneChannel bool // book both directions on one lane
	Delays     bool // have each copy of a swap held until it was booked, not begun as soon as the step before has ended
	Waits      bool // the step after a copy out waits for it, and the next iteration for all copies of this one
	// Variants are the variants that the steps take, per op, by their places in Job.Variants; nil: the first of each.
	Variants []int
}

// Step is one execution of an op.
type Step struct {
	Op   graph.OpID
	Want graph.StorageID // the storage that a recomputation is for; -1 for the first execution
	Wait time.Duration   // before it begins: idle time in which copies catch up
}

// chosen are the variants that steps take, per op.
type chosen struct {
	latency []time.Duration
	scratch []graph.Bytes
	again   []graph.Bytes // scratch of a step that repeats the op
	variant []string
}

// choose looks up the variants of a job.
func choose(j *scheduler.Job, variants []int) *chosen {
	n := len(j.Graph.Ops)
	c := &chosen{make([]time.Duration, n), make([]graph.Bytes, n), make([]graph.Bytes, n), make([]string, n)}
	for op := range n {
		k := 0
		if variants != nil {
			k = variants[op]
		}
		v := j.Variant(graph.OpID(op), k)
		c.latency[op], c.variant[op] = v.Latency, v.Name
		c.scratch[op] = max(v.Scratch, j.Graph.Scratch(graph.OpID(op), false))
		c.again[op] = max(v.Scratch, j.Graph.Scratch(graph.OpID(op), true))
	}
	return c
}

// scratchOf is the scratch of a step.
func (c *chosen) scratchOf(s Step) graph.Bytes {
	if s.Want >= 0 {
		return c.again[s.Op]
	}
	return c.scratch[s.Op]
}

// accesses says when the steps write and touch each storage.
type accesses struct {
	writes  writes  // by first executions
	lastUse []int32 // per storage: the last slot that touches it, or in which it is held; or -1
	held    []int32 // per storage: the last slot in which it is held; nil: none is
}

// times are those of an iteration in which no swap stalls.
type times struct {
	starts []time.Duration // per slot, and of the next iteration's first one
	period time.Duration   // the length of the iteration
}

// gapLists hold all gaps of a draft, each also in the list of its storage.
type gapLists struct {
	gaps []*Gap
	head []*Gap // per storage: its first gap
	tail []*Gap // per storage: its last gap
	slab []Gap  // where the next gaps lie
}

// The kinds of decisions, as they are written here.
const (
	keep      = scheduler.Keep
	swap      = scheduler.Swap
	recompute = scheduler.Recompute
)

// Gap is the time between two accesses to a storage that follow each other. Where it is not kept, the storage is away
// in the slots drop+1 to in, both included.
type Gap struct {
	// storage is what the gap is of.
	storage graph.StorageID
	// from and to are the slots of the two accesses. from is -1 for the arrival of an input.
	from, to int
	// made is the slot that made the content that the storage has in the gap; below 0: it was in the iteration before.
	made int
	// kind is what was decided for the gap.
	kind scheduler.Kind
	// dirty says that the storage was written since its gap before, or, if it has none, since the iteration began.
	dirty bool
	// drop is the slot after which the storage leaves, and in the slot after which it comes back.
	drop, in int
	// prev and next are the storage's other gaps; nil: there is none.
	prev, next *Gap

	// to is no access: a script holds the storage up to the slot before, and nothing uses it again. A swap of it has no
	// copy in.
	dies bool

	// send and fetch are, for swaps, when the copies begin, as booked.
	send, fetch time.Duration
	// copied says that a copy out is booked.
	copied bool
	// cost is how much time the decision is expected to cost.
	cost time.Duration
}

// Storage returns whose gap it is.
func (x *Gap) Storage() graph.StorageID { return x.storage }

// From and To return the slots of the accesses around the gap. From is -1 for the arrival of an input; To counts on
// from the last slot when the gap wraps. Where it Dies, To is the slot after the last in which a script holds it.
func (x *Gap) From() int { return x.from }
func (x *Gap) To() int   { return x.to }

// Drop and In return where the storage is away, if the gap is not kept: in the slots Drop+1 to In, both included.
func (x *Gap) Drop() int { return x.drop }
func (x *Gap) In() int   { return x.in }

// Kind returns what is decided, and Cost the time that it is expected to cost.
func (x *Gap) Kind() scheduler.Kind { return x.kind }
func (x *Gap) Cost() time.Duration  { return x.cost }

// Next returns the next gap of the storage, nil if there is none.
func (x *Gap) Next() *Gap { return x.next }

// Away reports whether the gap frees an unrolled slot.
func (x *Gap) Away(slot int) bool { return x.kind != keep && x.drop < slot && slot <= x.in }

// Dies reports whether nothing uses the storage after the gap, in which a script holds it: it is not copied back.
func (x *Gap) Dies() bool { return x.dies }

// Arrival reports whether the gap is the arrival of an input, which has to be copied in whatever is decided.
func (x *Gap) Arrival() bool { return x.from < 0 }

// writes lists per storage the slots of the first executions that make a version of it, ascending.
type writes struct {
	begin []int32
	slots []int32
}

func (w *writes) slotsOf(s graph.StorageID) []int32 { return w.slots[w.begin[s]:w.begin[s+1]] }

// FirstSteps executes every op once, in this order.
func FirstSteps(order []graph.OpID) []Step {
	steps := make([]Step, len(order))
	for i, op := range order {
		steps[i] = Step{Op: op, Want: -1}
	}
	return steps
}

// reset finds the gaps of the steps and frees the lanes.
func (d *Draft) reset() {
	d.exact = true
	d.findWrites()
	d.findGaps()
	d.measure()
	d.clear()
	_, peak := d.Peak()
	d.small, d.limit = d.worthwhile(peak), d.maxSwaps()
}

// Touched returns the storages that a step reads or makes. They are read only.
func (d *Draft) Touched(s Step) []graph.StorageID {
	all := d.touches.list(int(s.Op))
	made := d.makes.list(int(s.Op))
	if s.Want < 0 || len(made) == 1 {
		return all
	}
	var some []graph.StorageID
	for _, id := range all {
		if id == s.Want || !slices.Contains(made, id) {
			some = append(some, id)
		}
	}
	return some
}

// findWrites notes which first executions write and when each storage is touched last.
func (d *Draft) findWrites() {
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
		d.meter.tick(16)
		if step.Want < 0 {
			for _, s := range d.makes.list(int(step.Op)) {
				d.writes.slots[begin[s]] = int32(slot)
				begin[s]++
			}
		}
		for _, s := range d.Touched(step) {
			d.lastUse[s] = int32(slot)
		}
	}
	d.extendHeld()
}

// extendHeld has what something holds beside the ops stay until it is let go.
func (d *Draft) extendHeld() {
	d.held = nil
	var first []int32 // per op: the slot of its first execution
	for i := range d.g.Storages {
		until := d.g.Storages[i].Until
		if until == 0 {
			continue
		}
		if first == nil {
			d.held = slices.Repeat([]int32{-1}, len(d.g.Storages))
			first = make([]int32, len(d.g.Ops))
			for slot, step := range d.steps {
				if step.Want < 0 {
					first[step.Op] = int32(slot)
				}
			}
		}
		d.held[i] = first[until-1]
		d.lastUse[i] = max(d.lastUse[i], d.held[i])
	}
}

// leaves is the slot after which a storage can leave that was touched in one and is made again in another.
func (d *Draft) leaves(s graph.StorageID, last, again int) int {
	if d.held != nil && int(d.held[s]) < again {
		return max(last, int(d.held[s]))
	}
	return last
}

// findGaps lists the gaps between accesses, all kept but those that end in a recomputation. The arrival of an input
// is a swap that starts at the boundary: it is copied in before slot 0 until something else is decided.
func (d *Draft) findGaps() {
	n, storages := len(d.steps), d.g.Storages
	d.meter.count(n + len(d.touches.all))
	d.head, d.tail = make([]*Gap, len(storages)), make([]*Gap, len(storages))
	d.swapped = make([]int32, len(storages))
	d.gaps = make([]*Gap, 0, len(d.touches.all)/2)
	seen := make([]seen, len(storages))
	for slot, step := range d.steps {
		d.meter.tick(32)
		for _, s := range d.Touched(step) {
			x := &seen[s]
			switch {
			case x.first == 0:
				x.first = int32(slot + 1)
				if storages[s].Role == graph.Input {
					d.append(Gap{storage: s, from: -1, to: slot, made: -1, kind: swap, drop: -1, in: -1})
				}
			case s == step.Want:
				// or else its next version follows the one before
				if slot > int(x.last)+1 {
					drop := d.leaves(s, int(x.last), slot)
					d.append(x.gap(s, Gap{to: slot, kind: recompute, drop: drop, in: slot - 1}))
				}
				x.made = int32(slot + 1)
			case slot > int(x.last)+1:
				d.append(x.gap(s, Gap{to: slot}))
			}
			x.last = int32(slot)
		}
		if step.Want < 0 {
			for _, s := range d.makes.list(int(step.Op)) {
				seen[s].made, seen[s].dirty = int32(slot+1), true
			}
		}
	}
	for i := range storages {
		x := &seen[i]
		s := graph.StorageID(i)
		if d.held != nil && x.first > 0 && d.held[i] > x.last {
			d.append(x.gap(s, Gap{to: int(d.held[i]) + 1, dies: true}))
		}
		if x.first == 0 || !storages[i].Role.Persistent() {
			continue
		}
		if first := int(x.first) - 1; first+n > int(x.last)+1 {
			d.append(x.gap(s, Gap{to: first + n}))
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
func (x *seen) gap(s graph.StorageID, y Gap) Gap {
	y.storage, y.from, y.made, y.dirty = s, int(x.last), int(x.made)-1, x.dirty
	x.dirty = false
	return y
}

// append adds the last gap of its storage.
func (d *Draft) append(x Gap) {
	const chunk = 512
	if len(d.slab) == cap(d.slab) {
		d.slab = make([]Gap, 0, min(chunk, 16+len(d.steps)/2))
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

// Covers returns the slot as the gap counts it, between its accesses, and whether it lies there.
func (d *Draft) Covers(x *Gap, slot int) (int, bool) {
	if x.from < slot && slot < x.to {
		return slot, true
	}
	slot += len(d.steps)
	return slot, x.from < slot && slot < x.to
}

// set decides a gap and keeps the footprint right.
func (d *Draft) set(x *Gap, k scheduler.Kind, drop, in int) {
	if x.kind != keep {
		d.add(x.storage, x.drop+1, x.in, 1)
	}
	if d.between(x) {
		d.base += d.bytes[x.storage]
	}
	d.countSwap(x, -1)
	x.kind, x.drop, x.in = k, drop, in
	d.countSwap(x, 1)
	if x.kind != keep {
		d.add(x.storage, x.drop+1, x.in, -1)
	}
	if d.between(x) {
		d.base -= d.bytes[x.storage]
	}
}

// countSwap keeps account of the storages that are swapped.
func (d *Draft) countSwap(x *Gap, by int32) {
	if x.kind != swap || x.Arrival() {
		return
	}
	before := d.swapped[x.storage]
	d.swapped[x.storage] += by
	switch after := before + by; {
	case before == 0 && after > 0:
		d.swaps++
		d.host.use(d.copies * d.spills[x.storage])
	case before > 0 && after == 0:
		d.swaps--
		d.host.use(-d.copies * d.spills[x.storage])
	}
}

// clean reports whether a valid host copy exists in a gap by what is decided so far: since the storage was last
// written, another gap of it was swapped, or it is not written at all.
func (d *Draft) clean(x *Gap) bool {
	if x.Arrival() {
		return true // it has arrived from the host
	}
	if made := d.writes.slotsOf(x.storage); d.g.Storages[x.storage].Role == graph.Output &&
		x.from >= int(made[len(made)-1]) {
		return true // the last version of an output goes out where it is made
	}
	for y := x; !y.dirty; {
		if y.prev != nil {
			y = y.prev
		} else if !d.g.Storages[x.storage].Role.Persistent() {
			return y.Arrival()
		} else {
			y = d.tail[x.storage]
		}
		if y == x || y.kind == swap {
			return true
		}
	}
	return false
}

// Clone returns a copy whose changes have no effect on the original, nor the other way round.
func (d *Draft) Clone() *Draft {
	d.meter.count(len(d.steps) + len(d.gaps))
	c := *d
	c.gaps, c.slab = make([]*Gap, 0, len(d.gaps)), make([]Gap, 0, len(d.gaps))
	c.head, c.tail = make([]*Gap, len(d.head)), make([]*Gap, len(d.tail))
	for s := range d.head {
		for x := d.head[s]; x != nil; x = x.next {
			y := *x
			y.next = nil
			c.append(y)
		}
	}
	c.lanes, c.host = d.lanes.clone(), d.host.clone()
	c.swapped = slices.Clone(d.swapped)
	c.curve = d.curve.Clone()
	c.steps = slices.Clone(d.steps)
	return &c
}

// Clones returns a clone of each draft. They share what is left of the host as the originals do, apart from these.
func Clones(jobs []*Draft) []*Draft {
	all := make([]*Draft, len(jobs))
	for i, d := range jobs {
		all[i] = d.Clone()
		if i == 0 {
			all[0].host = d.host.clone()
		}
		all[i].host = all[0].host
	}
	return all
}
