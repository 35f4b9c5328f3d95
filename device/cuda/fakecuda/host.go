package fakecuda

import (
	"context"
	"fmt"
	"slices"
	"time"

	"tensile/device/cuda"
	"tensile/device/ptx"
)

type tokens struct {
	owed    []*token
	wrong   error  // what Watch or Run found, which Next returns
	threads []lane // of functions that have returned
}

// token is what Next is to return once.
type token struct {
	number uint64
	node   *node  // a record, or a function
	event  *event // of the record
}

// Watch implements cuda.Driver. Its errors are those of Next.
func (d *Driver) Watch(s cuda.Stream, e cuda.Event, number uint64) {
	const call = "cuEventSynchronize"
	err := d.enter(call)
	if err == nil {
		_, err = d.stream(call, s)
	}
	var of *event
	if err == nil {
		of, err = d.reached(call, e)
	}
	if err == nil && of.record.stream != s {
		err = refuse(call, cuda.InvalidValue, "event %d was recorded on stream %d, not on %d", e, of.record.stream, s)
	}
	if err != nil {
		if d.wrong == nil {
			d.wrong = err
		}
		return
	}
	of.watched++
	d.owed = append(d.owed, &token{number, of.record, of})
}

// Run implements cuda.Driver: f is executed within a call of the driver, Next at the latest, whenever the seed picks it
// among the operations that may be carried out. That reads or writes are not pinned is an error of Next.
func (d *Driver) Run(f func(), reads, writes []byte, number uint64) {
	n := &node{what: fmt.Sprintf("function %d of the host", number), call: d.count, isTimed: true,
		end: d.now + d.delay()}
	var pins [2]*pin
	for i, memory := range [][]byte{reads, writes} {
		if len(memory) == 0 {
			continue
		}
		p, err := d.pinned("Run", memory)
		if err != nil && d.wrong == nil {
			d.wrong = err
		}
		pins[i] = p
	}
	n.run = func(n *node) {
		for i, memory := range [][]byte{reads, writes} {
			if p := pins[i]; p != nil {
				var r ptx.Range
				r.Begin, r.End = rangeOf(memory)
				d.use(&p.shadow, p.begin, r, n, i == 1)
			}
		}
		f()
	}
	n.lane = d.thread()
	n.clock = slices.Clone(d.host).stamp(n.lane)
	d.streams.ready = append(d.streams.ready, n)
	d.owed = append(d.owed, &token{number, n, nil})
}

// thread returns a place in a lane whose last function the host knows to have returned.
func (d *Driver) thread() lane {
	if len(d.threads) == 0 {
		d.lanes++
		d.threads = append(d.threads, lane{number: d.lanes})
	}
	l := d.threads[len(d.threads)-1]
	d.threads = d.threads[:len(d.threads)-1]
	l.tick++
	return l
}

// delay is how long the host takes for something, up to 16 microseconds. A dry driver, which is there for its times,
// takes none.
func (d *Driver) delay() time.Duration {
	if d.options.Dry {
		return 0
	}
	return time.Duration(d.late.IntN(1 << 14))
}

// Next implements cuda.Driver. Time goes on to the end of the first that is watched or run, and a little further; of
// all that have ended then, the seed picks one, in order on each stream. When nothing is watched or run it waits for
// wake or ctx, and fails if wake is nil.
func (d *Driver) Next(ctx context.Context, wake <-chan struct{}) (number uint64, ok bool, err error) {
	const call = "cuEventSynchronize"
	if err := d.settleNext(call); err != nil {
		return 0, false, err
	}
	select {
	case <-wake:
		return 0, false, nil
	default:
	}
	if ctx.Err() != nil {
		return 0, false, nil
	}
	if len(d.owed) == 0 {
		if wake == nil {
			return 0, false, refuse(call, cuda.Unknown, "nothing is watched or run, and no wake can come; %s",
				d.standing())
		}
		select {
		case <-wake:
		case <-ctx.Done():
		}
		return 0, false, nil
	}
	d.now = max(d.now, d.firstEnd()) + d.delay()
	d.runUntil(d.now)
	t := d.pick()
	d.learn(t.node)
	if t.event != nil {
		t.event.watched--
	} else {
		d.threads = append(d.threads, t.node.lane)
	}
	return t.number, true, d.settleNext(call)
}

// settleNext is settle, with what Watch or Run found, which is told once.
func (d *Driver) settleNext(call string) error {
	if wrong := d.wrong; wrong != nil {
		d.wrong = nil
		return wrong
	}
	return d.settle(call)
}

// firstEnd returns when the first of what is owed ends. It gives times to no operation that starts later.
func (d *Driver) firstEnd() time.Duration {
	for {
		first, found := time.Duration(0), false
		for _, t := range d.owed {
			if t.node.isTimed && (!found || t.node.end < first) {
				first, found = t.node.end, true
			}
		}
		if i, start := d.following(); i < 0 || found && first <= start {
			return first
		}
		d.step()
	}
}

// pick takes one out of what is owed and has ended.
func (d *Driver) pick() *token {
	var due []int
	seen := make(map[cuda.Stream]bool)
	for i, t := range d.owed {
		stream := t.node.stream
		if t.node.isTimed && t.node.end <= d.now && !seen[stream] {
			due = append(due, i)
		}
		seen[stream] = stream != 0
	}
	i := due[d.order.IntN(len(due))]
	t := d.owed[i]
	d.owed = append(d.owed[:i], d.owed[i+1:]...)
	return t
}

// standing says what the streams have that nobody waits for.
func (d *Driver) standing() string {
	if d.unfinished == 0 {
		return "the streams are empty"
	}
	return fmt.Sprintf("the streams have %d operations, one of them %s", d.unfinished, d.streams.ready[0])
}
