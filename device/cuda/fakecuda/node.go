package fakecuda

import (
	"fmt"
	"slices"
	"time"

	"tensile/device/cuda"
)

// node is an operation that was put on a stream, or a function that Run was given. It is carried out when all before it
// have been, at a point that the seed picks; its times are worked out apart from that (clock.go).
type node struct {
	what   string // for messages
	call   int    // the number of the call that put it
	stream cuda.Stream
	lane
	clock   clock  // what comes before it, and itself
	capture *Graph // The graph that captured it instead of running it; nil: none.

	run  func(*node) // its effect; nil: none
	unit unit
	time func(*node) time.Duration // how long it takes the unit

	after           []*node // those that wait for it
	undone, untimed int     // how many of those before it are not carried out, and have no times
	isDone, isTimed bool
	ready, end      time.Duration
	instructions    int64 // Instructions that a kernel has executed.
	touched         int64 // bytes
}

func (n *node) String() string {
	if n.stream == 0 {
		return n.what
	}
	return fmt.Sprintf("%s (call %d, stream %d)", n.what, n.call, n.stream)
}

// put gives a node its place on a stream.
func (d *Driver) put(s *stream, n *node) {
	n.call = d.count
	if s.capture != nil {
		s.capture.take(s, n)
	} else {
		d.add(&s.lane, n, s.waits)
	}
	s.waits = []*node{n}
}

// add makes a node come after others and after all that the host knows to have ended.
func (d *Driver) add(l *lane, n *node, before []*node) {
	l.tick++
	n.lane, n.ready = *l, d.now
	n.clock = append(make(clock, 0, d.lanes+1), d.host...)
	for _, b := range before {
		n.clock = n.clock.merge(b.clock)
	}
	n.clock = n.clock.stamp(*l)
	d.all = d.all.merge(n.clock)
	d.unfinished++
	for _, b := range before {
		if b.isTimed {
			n.ready = max(n.ready, b.end)
		} else {
			n.untimed++
		}
		if !b.isDone {
			n.undone++
		}
		if !b.isTimed || !b.isDone {
			b.after = append(b.after, n)
		}
	}
	if n.undone == 0 {
		d.streams.ready = append(d.streams.ready, n)
	}
	if n.untimed == 0 {
		d.queue = append(d.queue, n)
	}
}

// carryOut carries out one operation that the seed picks among all that may be.
func (d *Driver) carryOut() {
	last := len(d.streams.ready) - 1
	i := d.order.IntN(last + 1)
	n := d.streams.ready[i]
	d.streams.ready[i] = d.streams.ready[last]
	d.streams.ready = d.streams.ready[:last]
	if n.run != nil && (d.failed == nil && d.dead == nil || n.stream == 0) {
		n.run(n)
	}
	n.isDone = true
	if n.stream != 0 {
		d.unfinished--
	}
	for _, next := range n.after {
		if next.undone--; next.undone == 0 {
			d.streams.ready = append(d.streams.ready, next)
		}
	}
	n.forget()
}

// forget drops what is not needed of a node that is over.
func (n *node) forget() {
	if n.isDone && n.isTimed {
		n.after, n.run, n.time = nil, nil, nil
	}
}

// need carries out operations until n is among them.
func (d *Driver) need(n *node) {
	for !n.isDone {
		d.carryOut()
	}
}

// runAll carries out all that is on streams, and lets that much time pass.
func (d *Driver) runAll() {
	for d.step() {
	}
	for d.unfinished > 0 {
		d.carryOut()
	}
	d.now = max(d.now, d.latest)
}

// byHost returns an operation of the host itself, which knows what the host knows now. After a call that has failed as
// it was told to, the host is not blamed for what it can not know.
func (d *Driver) byHost(what string) *node {
	if d.hasFailed() {
		d.host = d.host.merge(d.all)
	}
	d.host[0]++
	return &node{what: what, lane: lane{tick: d.host[0]}, clock: slices.Clone(d.host)}
}

// learn has the host know that an operation has ended.
func (d *Driver) learn(n *node) {
	d.need(n)
	d.host = d.host.merge(n.clock)
}
