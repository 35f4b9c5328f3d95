package draft

import (
	"cmp"
	"math/bits"
	"slices"
	"time"

	"tensile/graph"
)

// Stretch swaps, at one peak after the other, what wants the least idle time for the bytes and slots that it frees,
// until the footprint is at the goal. A copy that finds no free time on its lane is carried while a step waits: the one
// behind the access before the gap, or the one at the gap's end. Idle time that is there already serves the copies of
// both lanes. The steps wait that long then, and lanes are not booked exactly. It returns false if a slot stays above
// the goal whatever is swapped.
//
// How long steps wait is an estimate. Swaps that are planned freely between steps that wait as these do take place as
// they are booked.
func (d *Draft) Stretch(goal graph.Bytes) bool {
	w := &idler{Draft: d, idle: make([]time.Duration, len(d.steps))}
	w.exact = false
	_, highest := w.High()
	const levels = 8
	reached := true
	for level := graph.Bytes(1); level <= levels && reached; level++ {
		w.goal = highest - (highest-goal)*level/levels
		for reached {
			at, high := w.High()
			if high <= w.goal {
				break
			}
			reached = w.lowerPeak(at)
		}
	}
	for slot, wait := range w.idle {
		w.steps[slot].Wait += wait
	}
	return reached
}

type idler struct {
	*Draft
	goal graph.Bytes
	idle []time.Duration // per slot
	room []room          // in idle time, by slot
}

// room is what is left of the idle time before a slot, on each lane.
type room struct {
	slot    int
	out, in time.Duration
}

// late is a swap that frees an unrolled slot, and the idle time that it wants.
type late struct {
	gap            *Gap
	at             int
	gain           uint64 // bytes times slots above the goal that it frees
	placed         placed
	out, in        time.Duration // the times of the copies that find no free time
	before, behind time.Duration // idle time that there is not yet
	size           graph.Bytes
}

// compare is negative if a swap wants less idle time than another for what it frees.
func (l *late) compare(other *late) int {
	high, low := bits.Mul64(uint64(l.before+l.behind), other.gain)
	otherHigh, otherLow := bits.Mul64(uint64(other.before+other.behind), l.gain)
	return cmp.Or(cmp.Compare(high, otherHigh), cmp.Compare(low, otherLow))
}

// lowerPeak swaps at a peak what costs least until it is at the goal or somewhere else.
func (w *idler) lowerPeak(at int) bool {
	n := len(w.steps)
	w.meter.count(n + len(w.gaps))
	above := make([]uint64, 2*n+1) // per unrolled slot: how many before it are above the goal
	slots := w.curve.Slots()
	for i := range 2 * n {
		above[i+1] = above[i]
		if slots[i%n] > w.goal {
			above[i+1]++
		}
	}
	var all []late
	for _, x := range w.gaps {
		slot, ok := w.coveringSlot(x, at)
		if !ok || x.kind == recompute || x.Away(slot) && at != boundary || w.bytes[x.storage] < w.small ||
			!w.MaySwap(x) {
			continue
		}
		l := w.place(x, slot)
		l.gain = uint64(l.size) * (above[l.placed.in+1] - above[l.placed.drop+1])
		if at == boundary {
			l.gain += uint64(l.size)
		}
		all = append(all, l)
	}
	w.meter.count(len(all) * 2 * fitSteps)
	slices.SortFunc(all, func(a, b late) int {
		return cmp.Or(a.compare(&b), cmp.Compare(b.size, a.size), cmp.Compare(a.gap.storage, b.gap.storage),
			cmp.Compare(a.gap.from, b.gap.from))
	})
	done := false
	for i := range all {
		if !w.MaySwap(all[i].gap) {
			continue // one before it was the last that may
		}
		w.swap(w.place(all[i].gap, all[i].at))
		done = true
		if now, high := w.High(); now != at || high <= w.goal {
			return true
		}
	}
	return done
}

// place finds link time for a swap that frees an unrolled slot.
func (w *idler) place(x *Gap, at int) late {
	bytes := w.g.Storages[x.storage].Bytes
	l := late{gap: x, at: at, size: bytes}
	if x.kind == swap {
		return w.widen(l)
	}
	p := placed{send: w.end(x.from), fetchTakes: w.fetchTime(x), drop: x.from, in: x.to - 1}
	if !w.clean(x) {
		p.sendTakes = w.out.Time(bytes)
		begin := w.end(x.from)
		if !w.style.LateOut {
			begin = w.end(x.made)
		}
		var ok bool
		if p.send, ok = w.outs.earliest(begin, w.start(at), p.sendTakes); ok {
			p.drop = min(at-1, w.firstEndedAt(p.send+p.sendTakes, x.from))
		} else {
			l.out = p.sendTakes
			l.before = max(0, l.out-w.roomBefore(x.made+1, at, false))
		}
	}
	var ok bool
	if p.fetch, ok = w.ins.latestStart(w.end(at), w.start(x.to), p.fetchTakes); ok {
		p.in = max(at, w.lastEndedBy(p.fetch, x.to-1))
	} else {
		l.in = p.fetchTakes
		l.behind = max(0, l.in-w.roomBefore(at+1, x.to, true))
	}
	l.placed = p
	return l
}

// widen has a swap that is planned already free one slot more: the copy that is in its way is carried while a step
// waits.
func (w *idler) widen(l late) late {
	x := l.gap
	l.placed = placed{drop: x.drop, in: x.in, send: x.send, fetch: x.fetch}
	if l.placed.drop >= l.at {
		l.placed.drop = x.from
		if x.copied {
			l.out = w.out.Time(l.size)
			l.before = max(0, l.out-w.roomBefore(x.made+1, l.at, false))
		}
	}
	if l.placed.in < l.at {
		l.placed.in, l.in = x.to-1, w.in.Time(l.size)
		l.behind = max(0, l.in-w.roomBefore(l.at+1, x.to, true))
	}
	return l
}

// swap swaps a gap as placed, with the idle time that it wants.
func (w *idler) swap(l late) {
	w.addWait(l.gap.from+1, l.before)
	w.addWait(l.gap.to, l.behind)
	w.use(l.gap.made+1, l.at, l.out, false)
	w.use(l.at+1, l.gap.to, l.in, true)
	p := l.placed
	send, fetch := stretch{p.send, p.send + p.sendTakes}, stretch{p.fetch, p.fetch + p.fetchTakes}
	if l.out > 0 {
		send = stretch{}
	}
	if l.in > 0 {
		fetch = stretch{}
	}
	w.book(send, fetch)
	l.gap.copied = l.gap.copied || p.sendTakes > 0
	w.set(l.gap, swap, p.drop, p.in)
}

// addWait adds idle time before a slot.
func (w *idler) addWait(slot int, t time.Duration) {
	if t == 0 {
		return
	}
	slot %= len(w.steps)
	w.idle[slot] += t
	i, found := slices.BinarySearchFunc(w.room, slot, func(r room, slot int) int { return cmp.Compare(r.slot, slot) })
	if !found {
		w.room = slices.Insert(w.room, i, room{slot: slot})
	}
	w.room[i].out += t
	w.room[i].in += t
}

// roomBefore is the room on a lane before the unrolled slots from to to, both included.
func (w *idler) roomBefore(from, to int, in bool) (t time.Duration) {
	w.each(from, to, func(r *room) {
		if in {
			t += r.in
		} else {
			t += r.out
		}
	})
	return t
}

// use takes room on a lane before the unrolled slots from to to.
func (w *idler) use(from, to int, t time.Duration, in bool) {
	w.each(from, to, func(r *room) {
		at := &r.out
		if in {
			at = &r.in
		}
		took := min(t, *at)
		*at -= took
		t -= took
	})
}

func (w *idler) each(from, to int, do func(*room)) {
	n := len(w.steps)
	w.meter.count(len(w.room))
	for i := range w.room {
		r := &w.room[i]
		for _, slot := range [3]int{r.slot - n, r.slot, r.slot + n} {
			if from <= slot && slot <= to {
				do(r)
				break
			}
		}
	}
}
