package fakecuda

import (
	"math"
	"math/rand/v2"
	"time"

	"tensile/device/cuda"
	"tensile/graph"
)

// unit is what carries operations out, one at a time: first come, first served.
type unit int

const (
	none    unit = iota // records take no time
	compute             // kernels and fills
	out
	inward
	units
)

type timeline struct {
	now    time.Duration // The host's time.
	queue  []*node       // all before these have times
	free   [units]time.Duration
	latest time.Duration // end of all that has times
	late   *rand.Rand    // how late the host learns of things
}

// Now implements cuda.Driver: virtual time.
func (d *Driver) Now() time.Duration { return d.now }

// following returns the index in the queue of the operation that starts next, and when that is; -1 if there is none. An
// operation that is put from now on starts no earlier than those that start up to now: engines serve in the order in
// which operations become ready.
func (d *Driver) following() (index int, start time.Duration) {
	index = -1
	for i, n := range d.queue {
		at := max(n.ready, d.free[n.unit])
		if index < 0 || at < start || at == start && startsBefore(n, d.queue[index]) {
			index, start = i, at
		}
	}
	return index, start
}

// startsBefore orders operations that could start at one instant.
func startsBefore(a, b *node) bool {
	if a.ready != b.ready {
		return a.ready < b.ready
	}
	return a.call < b.call
}

// step gives the operation that starts next its times, and reports whether there was one.
func (d *Driver) step() bool {
	i, start := d.following()
	if i < 0 {
		return false
	}
	n := d.queue[i]
	d.queue[i] = d.queue[len(d.queue)-1]
	d.queue = d.queue[:len(d.queue)-1]
	n.end = start
	if n.unit != none {
		n.end += n.time(n)
		d.free[n.unit] = n.end
	}
	n.isTimed = true
	d.latest = max(d.latest, n.end)
	for _, next := range n.after {
		next.ready = max(next.ready, n.end)
		if next.untimed--; next.untimed == 0 {
			d.queue = append(d.queue, next)
		}
	}
	n.forget()
	return true
}

// runUntil gives all operations times that start up to an instant.
func (d *Driver) runUntil(t time.Duration) {
	for {
		i, start := d.following()
		if i < 0 || start > t {
			return
		}
		d.step()
	}
}

// roofline returns the time of a kernel. An instruction counts as two operations, as those do for which peak rates are
// given.
func (d *Driver) roofline(instructions, bytes int64) time.Duration {
	return d.facts.Roofline(graph.Cost{FLOPs: 2 * instructions, Bytes: graph.Bytes(bytes)})
}

// Ended implements cuda.Driver. When it returns false, time goes on to where the next operation starts or the event is
// reached, so that a caller that polls comes to an end.
func (d *Driver) Ended(e cuda.Event) (bool, error) {
	const call = "cuEventQuery"
	if err := d.enter(call); err != nil {
		return false, err
	}
	of, err := d.reached(call, e)
	if err != nil {
		return false, err
	}
	d.runUntil(d.now)
	if n := of.record; !n.isTimed {
		_, start := d.following()
		d.now = max(d.now, start)
	} else if n.end > d.now {
		d.now = n.end
	} else {
		d.learn(n)
		return true, d.settle(call)
	}
	return false, d.settle(call)
}

// Elapsed implements cuda.Driver, with CUDA's precision: milliseconds as a float32.
func (d *Driver) Elapsed(a, b cuda.Event) (time.Duration, error) {
	const call = "cuEventElapsedTime"
	if err := d.enter(call); err != nil {
		return 0, err
	}
	var ends [2]time.Duration
	for i, e := range []cuda.Event{a, b} {
		of, err := d.reached(call, e)
		if err != nil {
			return 0, err
		}
		if d.runUntil(d.now); !of.record.isTimed || of.record.end > d.now {
			return 0, refuse(call, cuda.NotReady, "event %d has not ended", e)
		}
		d.learn(of.record)
		ends[i] = of.record.end
	}
	milliseconds := float32(float64(ends[1]-ends[0]) / 1e6)
	return time.Duration(math.Round(float64(milliseconds) * 1e6)), d.settle(call)
}
