package draft

import (
	"sort"
	"time"

	"tensile/graph"
	"tensile/peak"
	"tensile/scheduler"
)

// measure computes step times and footprint from the steps and gaps.
func (d *Draft) measure() {
	d.findTimes()
	d.findBase()
	d.curve = peak.NewCurve(d.footprint(
		func(s graph.StorageID) graph.Bytes { return d.bytes[s] },
		func(s Step) graph.Bytes { return scheduler.RoundUp(d.scratchOf(s), d.align) }))
}

// footprint adds up, per slot, what is on the device by what is decided, and scratch (Algorithm 1 of TENSILE, in
// whole): the storages with which the iteration begins, those that are made, copied in, copied out and released.
func (d *Draft) footprint(size func(graph.StorageID) graph.Bytes, scratch func(Step) graph.Bytes) []graph.Bytes {
	n := len(d.steps)
	d.meter.count(n + len(d.gaps) + len(d.g.Storages))
	change := make([]graph.Bytes, 2*n+1) // in unrolled slots
	occupy := func(s graph.StorageID, from, to int, sign graph.Bytes) {
		change[from] += sign * size(s)
		change[to+1] -= sign * size(s)
	}
	for i := range d.g.Storages {
		s := &d.g.Storages[i]
		switch last := int(d.lastUse[s.ID]); {
		case last < 0:
		case s.Role.Persistent():
			occupy(s.ID, 0, n-1, 1)
		case s.Role == graph.Input:
			occupy(s.ID, 0, last, 1)
		default:
			occupy(s.ID, int(d.writes.slotsOf(s.ID)[0]), last, 1)
		}
	}
	for _, x := range d.gaps {
		if x.kind != keep {
			occupy(x.storage, x.drop+1, x.in, -1)
		}
	}
	slots := make([]graph.Bytes, n)
	var now graph.Bytes
	for slot, c := range change[:2*n] {
		now += c
		if slot < n {
			slots[slot] += now
		} else {
			slots[slot-n] += now
		}
	}
	for slot, step := range d.steps {
		slots[slot] += scratch(step)
	}
	return slots
}

// findTimes computes when each step begins if no swap stalls: inputs are copied in one after the other as they are
// needed, and the steps that read them first wait for them, in a run without a plan too.
func (d *Draft) findTimes() {
	n := len(d.steps)
	d.starts = make([]time.Duration, n+1)
	arrivals := d.arrivals()
	var arrived time.Duration
	for slot, s := range d.steps {
		d.starts[slot] += s.Wait
		for len(arrivals) > 0 && arrivals[0].to == slot {
			arrived += d.in.Time(d.g.Storages[arrivals[0].storage].Bytes)
			arrivals = arrivals[1:]
			d.starts[slot] = max(d.starts[slot], arrived)
		}
		d.starts[slot+1] = d.starts[slot] + d.latency[s.Op]
	}
	d.period = d.starts[n]
}

// arrivals lists the arrivals of inputs, in the order in which they are needed.
func (d *Draft) arrivals() []*Gap {
	var all []*Gap
	for _, x := range d.gaps {
		if x.Arrival() {
			all = append(all, x)
		}
	}
	return all
}

// clear begins with lanes on which only those copies are booked that happen in any case: of inputs, and of outputs
// where they are made.
func (d *Draft) clear() {
	d.outs, d.ins, d.shared = newLane(d.period), newLane(d.period), false
	if d.style.OneChannel {
		d.outs = d.ins
	}
	var arrived time.Duration
	for _, x := range d.arrivals() {
		took := d.in.Time(d.g.Storages[x.storage].Bytes)
		x.fetch = arrived
		d.ins.book(arrived, took)
		arrived += took
	}
	for i := range d.g.Storages {
		if s := &d.g.Storages[i]; s.Role == graph.Output {
			made := d.writes.slotsOf(s.ID)
			took := d.out.Time(s.Bytes)
			at, _ := d.outs.earliest(d.end(int(made[len(made)-1])), never, took)
			d.outs.book(at, took)
		}
	}
}

// add adds sign times a storage's bytes to the slots from to to, both included and unrolled.
func (d *Draft) add(s graph.StorageID, from, to int, sign graph.Bytes) {
	n := d.curve.Len()
	bytes := sign * d.bytes[s]
	if from < n {
		d.curve.Add(from, min(to+1, n), bytes)
	}
	if to >= n {
		d.curve.Add(max(from, n)-n, to+1-n, bytes)
	}
}

// Peak returns the first slot with the largest footprint.
func (d *Draft) Peak() (slot int, bytes graph.Bytes) { return d.curve.Peak() }

// start and end return the planned times of an unrolled slot, which may lie in the iteration before.
func (d *Draft) start(slot int) time.Duration {
	n := len(d.steps)
	switch {
	case slot < 0:
		return d.starts[slot+n] - d.period
	case slot < n:
		return d.starts[slot]
	}
	return d.starts[slot%n] + time.Duration(slot/n)*d.period
}

func (d *Draft) end(slot int) time.Duration {
	n := len(d.steps)
	op := d.steps[(slot+n)%n].Op
	return d.start(slot) + d.latency[op]
}

// firstEndedAt returns the first slot, from a given one on, that ends at t or later.
func (d *Draft) firstEndedAt(t time.Duration, from int) int {
	return from + sort.Search(2*len(d.steps)-from, func(i int) bool { return d.end(from+i) >= t })
}

// lastEndedBy returns the last slot, up to a given one, that has ended at t, or -1.
func (d *Draft) lastEndedBy(t time.Duration, to int) int {
	return sort.Search(to+1, func(slot int) bool { return d.end(slot) > t }) - 1
}
