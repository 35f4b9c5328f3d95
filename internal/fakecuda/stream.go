package fakecuda

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"tensile/device/cuda"
	"tensile/internal/ptx"
)

// node is an operation that was put on a stream, or a function that Run was given. It is carried out when all before it
// have been, at a point that the seed picks; its times are worked out apart from that (clock.go).
type node struct {
	what   string // for messages
	call   int    // the number of the call that put it
	stream cuda.Stream
	lane
	clock   clock  // what comes before it, and itself
	capture *Graph // that it is a part of, instead of being put; nil: none

	run  func(*node) // its effect; nil: none
	unit unit
	time func(*node) time.Duration // how long it takes the unit

	after           []*node // those that wait for it
	undone, untimed int     // how many of those before it are not carried out, and have no times
	isDone, isTimed bool
	ready, end      time.Duration
	instructions    int64 // that a kernel has executed
	touched         int64 // bytes
}

func (n *node) String() string {
	if n.stream == 0 {
		return n.what
	}
	return fmt.Sprintf("%s (call %d, stream %d)", n.what, n.call, n.stream)
}

type streams struct {
	handles    uint64 // the last that was given; no number is used twice
	streamOf   map[cuda.Stream]*stream
	eventOf    map[cuda.Event]*event
	lanes      int
	host       clock // what the host knows to have ended
	all        clock // all that was put
	ready      []*node
	unfinished int // nodes of streams that are not carried out
	order      *rand.Rand
}

type stream struct {
	lane    lane
	waits   []*node // what the next operation waits for: the one before it, and records that were awaited since
	capture *Graph  // that takes what is put; nil: none
	outside []*node // waits as they were before the capture
	refused bool
}

type event struct {
	record  *node // the latest, nil: none
	watched int   // tokens that Next owes
	refused bool
}

// NewStream implements cuda.Driver.
func (d *Driver) NewStream() (cuda.Stream, error) {
	if err := d.enter("cuStreamCreate"); err != nil {
		return 0, err
	}
	d.handles++
	d.lanes++
	d.streamOf[cuda.Stream(d.handles)] = &stream{lane: lane{number: d.lanes}}
	return cuda.Stream(d.handles), nil
}

// DestroyStream implements cuda.Driver. What is on the stream goes on.
func (d *Driver) DestroyStream(s cuda.Stream) error {
	const call = "cuStreamDestroy"
	err := d.enter(call)
	of, unknown := d.stream(call, s)
	if unknown != nil {
		return cmp.Or(err, unknown)
	} else if err != nil {
		of.refused = true
		return err
	}
	delete(d.streamOf, s)
	return nil
}

// NewEvent implements cuda.Driver.
func (d *Driver) NewEvent() (cuda.Event, error) {
	if err := d.enter("cuEventCreate"); err != nil {
		return 0, err
	}
	d.handles++
	d.eventOf[cuda.Event(d.handles)] = &event{}
	return cuda.Event(d.handles), nil
}

// DestroyEvent implements cuda.Driver. An event whose token Next still owes is an error, but where a call has failed as
// it was told to.
func (d *Driver) DestroyEvent(e cuda.Event) error {
	const call = "cuEventDestroy"
	err := d.enter(call)
	of, unknown := d.event(call, e)
	if unknown != nil {
		return cmp.Or(err, unknown)
	} else if err != nil {
		of.refused = true
		return err
	} else if of.watched > 0 && !d.hasFailed() {
		return refuse(call, cuda.InvalidValue, "event %d is watched", e)
	}
	d.owed = slices.DeleteFunc(d.owed, func(t *token) bool { return t.event == of })
	delete(d.eventOf, e)
	return nil
}

func (d *Driver) stream(call string, s cuda.Stream) (*stream, error) {
	of, ok := d.streamOf[s]
	switch {
	case s == 0:
		return nil, refuse(call, invalidHandle, "stream 0 is the default stream, which waits for all others")
	case !ok:
		return nil, refuse(call, invalidHandle, "there is no stream %d", s)
	}
	return of, nil
}

func (d *Driver) event(call string, e cuda.Event) (*event, error) {
	of, ok := d.eventOf[e]
	if !ok {
		return nil, refuse(call, invalidHandle, "there is no event %d", e)
	}
	return of, nil
}

// recorded is event, with an error for one that was never recorded.
func (d *Driver) recorded(call string, e cuda.Event) (*event, error) {
	of, err := d.event(call, e)
	if err == nil && of.record == nil {
		err = refuse(call, invalidHandle, "event %d was never recorded", e)
	}
	return of, err
}

// reached is recorded, with an error for one that was recorded in a capture.
func (d *Driver) reached(call string, e cuda.Event) (*event, error) {
	of, err := d.recorded(call, e)
	if err == nil && of.record.capture != nil {
		err = refuse(call, cuda.StreamCaptureBad, "event %d was recorded in a capture", e)
	}
	return of, err
}

// CopyIn implements cuda.Driver.
func (d *Driver) CopyIn(s cuda.Stream, to cuda.Address, from []byte) error {
	const call = "cuMemcpyHtoDAsync"
	if err := d.enter(call); err != nil {
		return err
	}
	return d.copy(call, s, to, from, true)
}

// CopyOut implements cuda.Driver. To copy bytes that nothing has written is an error.
func (d *Driver) CopyOut(s cuda.Stream, to []byte, from cuda.Address) error {
	const call = "cuMemcpyDtoHAsync"
	if err := d.enter(call); err != nil {
		return err
	}
	return d.copy(call, s, from, to, false)
}

// copy puts a copy between device and host on a stream.
func (d *Driver) copy(call string, s cuda.Stream, address cuda.Address, host []byte, in bool) error {
	of, err := d.stream(call, s)
	if err != nil {
		return err
	}
	begin, size := uint64(address), len(host)
	a, err := d.device(call, begin, size)
	if err != nil {
		return err
	}
	p, err := d.pinned(call, host)
	if err != nil {
		return err
	}
	there := ptx.Range{Begin: begin, End: begin + uint64(size)}
	here := ptx.Range{}
	here.Begin, here.End = rangeOf(host)
	n := &node{what: fmt.Sprintf("copy out of %d bytes from %s", size, hex(begin)), stream: s, unit: out,
		time: func(*node) time.Duration { return d.facts.Out.Time(bytesOf(size)) }}
	if in {
		n.what, n.unit = fmt.Sprintf("copy in of %d bytes to %s", size, hex(begin)), inward
		n.time = func(*node) time.Duration { return d.facts.In.Time(bytesOf(size)) }
	}
	n.run = func(n *node) {
		d.use(&p.shadow, p.begin, here, n, !in)
		d.use(&a.shadow, a.begin, there, n, in)
		switch {
		case d.options.Dry || d.failed != nil:
		case in:
			copy(a.write(begin, size), host)
		default:
			bytes, missing := a.read(begin, size)
			if missing >= 0 {
				d.found(cuda.Unknown, "%s: its byte %d was never written", n, missing)
				return
			}
			copy(host, bytes)
		}
	}
	d.put(of, n)
	return nil
}

// Fill implements cuda.Driver.
func (d *Driver) Fill(s cuda.Stream, to cuda.Address, word uint32, words int) error {
	const call = "cuMemsetD32Async"
	if err := d.enter(call); err != nil {
		return err
	}
	of, err := d.stream(call, s)
	if err != nil {
		return err
	}
	begin, size := uint64(to), 4*words
	a, err := d.device(call, begin, size)
	if err != nil {
		return err
	} else if begin%4 != 0 {
		return refuse(call, cuda.InvalidValue, "%#x is not the address of a word", begin)
	}
	d.put(of, &node{what: fmt.Sprintf("fill of %d bytes at %s", size, hex(begin)), stream: s, unit: compute,
		time: func(*node) time.Duration { return d.roofline(0, int64(size)) },
		run: func(n *node) {
			d.use(&a.shadow, a.begin, ptx.Range{Begin: begin, End: begin + uint64(size)}, n, true)
			if d.options.Dry || d.failed != nil {
				return
			}
			bytes := a.write(begin, size)
			for i := range bytes {
				bytes[i] = byte(word >> (i % 4 * 8))
			}
		}})
	return nil
}

// Record implements cuda.Driver. An event whose token Next still owes is an error: what is watched would be another
// record.
func (d *Driver) Record(s cuda.Stream, e cuda.Event) error {
	const call = "cuEventRecord"
	if err := d.enter(call); err != nil {
		return err
	}
	of, err := d.stream(call, s)
	if err != nil {
		return err
	}
	to, err := d.event(call, e)
	if err != nil {
		return err
	} else if to.watched > 0 {
		return refuse(call, cuda.InvalidValue, "event %d is watched", e)
	}
	to.record = &node{what: fmt.Sprintf("record of event %d", e), stream: s}
	d.put(of, to.record)
	return nil
}

// Wait implements cuda.Driver. An event that was never recorded is an error; CUDA's would not wait.
func (d *Driver) Wait(s cuda.Stream, e cuda.Event) error {
	const call = "cuStreamWaitEvent"
	if err := d.enter(call); err != nil {
		return err
	}
	of, err := d.stream(call, s)
	if err != nil {
		return err
	}
	from, err := d.recorded(call, e)
	if err != nil {
		return err
	}
	if err := of.join(call, from.record.capture); err != nil {
		return err
	}
	of.waits = append(of.waits, from.record)
	return nil
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
		n.clock = n.clock.with(b.clock)
	}
	n.clock = n.clock.at(*l)
	d.all = d.all.with(n.clock)
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
	if n.run != nil && (d.failed == nil || n.lane.number == 0) {
		n.run(n)
	}
	n.isDone = true
	if n.lane.number != 0 {
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
		d.host = d.host.with(d.all)
	}
	d.host[0]++
	return &node{what: what, lane: lane{tick: d.host[0]}, clock: slices.Clone(d.host)}
}

// learn has the host know that an operation has ended.
func (d *Driver) learn(n *node) {
	d.need(n)
	d.host = d.host.with(n.clock)
}

// Synchronize implements cuda.Driver.
func (d *Driver) Synchronize() error {
	const call = "cuCtxSynchronize"
	if err := d.enter(call); err != nil {
		return err
	}
	for _, s := range d.streamOf {
		if s.capture != nil {
			return refuse(call, cuda.StreamCaptureBad, "a stream is being captured")
		}
	}
	d.runAll()
	d.host = d.host.with(d.all)
	return d.settle(call)
}
