package trace

import (
	"fmt"

	"tensile/plan/pool"
)

// LifetimeOptions are the settings of LifetimesOf; the zero value is the recommended one.
type LifetimeOptions struct {
	Align int64 // of every offset, a power of two; 0 means 1

	// Tighten takes a block's bytes as needed from the first access to the last, not from malloc to free, where
	// accesses were recorded. The layout is lower, but an allocator that sees only malloc and free cannot keep to it.
	Tighten bool
}

// Resident is a block that has a place in the layout.
type Resident struct {
	Block string // id in the first iteration
	Slot  int    // of its malloc; -1 if it was there before the first iteration and outlives them all
}

// Lifetimes are the blocks of an iteration as buffers to be packed. The slots are those of the iteration.
type Lifetimes struct {
	Iteration
	Buffers   []pool.Buffer
	Residents []Resident // one per buffer
	Load      int64      // bytes: the most that the framework held at once in the first iteration; the peak memory load
	Fixed     int64      // bytes of Load that were there before the first iteration and outlive them all

	options LifetimeOptions
	mallocs []int // per buffer: its event
}

// LifetimesOf returns the lifetimes of an iteration that Find or Whole returned for the trace. A block that is malloced
// in one iteration and freed in the next has two spans, [0, free) and [malloc, events); one that is never freed in a
// trace taken as a whole lives to its end. First come the blocks from before the iteration, then the others as they are
// malloced. The error names the first event that does not fit, or says that blocks live for longer than an iteration:
// no one place is enough for those of a slot. O(n) for n events.
func LifetimesOf(t Trace, it Iteration, o LifetimeOptions) (*Lifetimes, error) {
	h, err := newHistory(t)
	if err != nil {
		return nil, err
	}
	if it.From < 0 || it.Events < 0 || it.Repeats < 1 || it.Events > (len(t)-it.From)/it.Repeats {
		return nil, fmt.Errorf("%d iterations of %d events from event %d on are no part of a trace of %d events",
			it.Repeats, it.Events, it.From, len(t))
	}
	l := &liver{Lifetimes: Lifetimes{Iteration: it, options: o}, t: t, h: h}
	if n := h.outliving(t, it); it.Repeats > 1 && n > 0 {
		return nil, fmt.Errorf("%d blocks live for longer than an iteration of %d events: take several as one, or "+
			"the whole trace", n, it.Events)
	}
	if it.Events > 0 {
		l.before()
		l.within()
	}
	return &l.Lifetimes, nil
}

// liver makes lifetimes.
type liver struct {
	Lifetimes
	t Trace
	h *history
}

// before adds the blocks from before the iteration. One that is freed in the course of several iterations is the
// previous one of a block that is malloced in this one.
func (l *liver) before() {
	for m, e := range l.t[:l.From] {
		if e.Kind != Malloc || l.h.freed[m] < l.From {
			continue
		}
		l.Load += e.Bytes
		to := l.Events
		if l.h.freed[m] >= l.end() {
			l.Fixed += e.Bytes
		} else if to = l.h.freed[m] - l.From; l.Repeats > 1 {
			continue
		}
		l.add(Resident{e.Block, -1}, m, pool.Span{From: 0, To: max(to, 1)}) // it is there before event 0
	}
}

// within adds the blocks that are malloced in the iteration and finds the load.
func (l *liver) within() {
	first, last := l.accesses()
	for slot := range l.Events {
		i := l.From + slot
		e := l.t[i]
		if e.Kind != Malloc {
			continue
		}
		to := l.h.freed[i] - l.From
		if l.Repeats == 1 {
			to = min(to, l.Events)
		}
		who := Resident{e.Block, slot}
		span := pool.Span{From: slot, To: to}
		if l.options.Tighten && first[slot] >= 0 {
			span = pool.Span{From: first[slot], To: last[slot] + 1}
		}
		l.add(who, i, span)
	}
	l.Load = l.peakFrom(l.Load)
}

// peakFrom is the peak load of an iteration that begins with a load.
func (l *liver) peakFrom(load int64) int64 {
	peak := load
	for i := l.From; i < l.From+l.Events; i++ {
		switch bytes := l.t[l.h.malloc[i]].Bytes; l.t[i].Kind {
		case Malloc:
			load += bytes
			peak = max(peak, load)
		case Free:
			load -= bytes
		}
	}
	return peak
}

// accesses returns, per slot with a malloc, the first and the last access to the block as slots counted on into the
// next iteration; -1 where there is none.
func (l *liver) accesses() (first, last []int) {
	first, last = make([]int, l.Events), make([]int, l.Events)
	for slot := range first {
		first[slot] = -1
	}
	for i := l.From; i < min(l.end(), l.From+2*l.Events); i++ {
		m := l.h.malloc[i] - l.From
		if kind := l.t[i].Kind; m < 0 || m >= l.Events || kind != Read && kind != Write {
			continue
		}
		if last[m] = i - l.From; first[m] < 0 {
			first[m] = i - l.From
		}
	}
	return first, last
}

// add adds a buffer for a malloc, with a span no longer than the iteration that may reach into the next one.
func (l *liver) add(who Resident, malloc int, span pool.Span) {
	n := l.Events
	if span.From >= n {
		span = pool.Span{From: span.From - n, To: span.To - n}
	}
	spans := []pool.Span{span}
	if span.To > n {
		spans = []pool.Span{{From: 0, To: span.To - n}, {From: span.From, To: n}}
	}
	l.Buffers = append(l.Buffers, pool.Buffer{Size: l.t[malloc].Bytes, Spans: spans, Align: l.options.Align})
	l.Residents, l.mallocs = append(l.Residents, who), append(l.mallocs, malloc)
}

// Accesses returns, per buffer, the slots of the reads and writes of its block, ascending, in the trace that the
// lifetimes are of. Slots count on over the end of the iteration where the block was malloced in it and is freed in the
// next.
func (l *Lifetimes) Accesses(t Trace) ([][]int, error) {
	h, err := newHistory(t)
	if err != nil {
		return nil, err
	}
	buffers := make(map[int]int, len(l.mallocs))
	for i, m := range l.mallocs {
		buffers[m] = i
	}
	all := make([][]int, len(l.Buffers))
	for i := l.From; i < min(l.end(), l.From+2*l.Events); i++ {
		k, ok := buffers[h.malloc[i]]
		if kind := t[i].Kind; !ok || kind != Read && kind != Write ||
			l.Residents[k].Slot < 0 && i >= l.From+l.Events { // of a block that stays: the next iteration is alike
			continue
		}
		all[k] = append(all[k], i-l.From)
	}
	return all, nil
}
