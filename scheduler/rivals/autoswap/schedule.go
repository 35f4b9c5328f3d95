package autoswap

import (
	"slices"
	"time"

	"tensile/graph"
)

// Swap says when a variable leaves and comes back: it is copied out after the access at From, off the device in the
// slots Drop+1 to In, and copied in after slot In. It stays where In is not after Drop.
type Swap struct {
	Pause    int
	Drop, In int // unrolled slots
}

// Away reports whether the variable leaves at all.
func (s *Swap) Away() bool { return s.Drop < s.In }

// unrolled returns an unrolled slot as the pause counts it, between its accesses, and whether it lies there.
func (p *Pause) unrolled(slot, n int) (int, bool) {
	if p.From < slot && slot < p.To {
		return slot, true
	}
	return slot + n, slot+n < p.To
}

// schedule is where picked variables leave and come back (section IV-E).
type schedule struct {
	*Iteration
	swaps  []Swap // by access
	byNext []int  // of swaps, by next access
	load   []graph.Bytes
}

// schedule times the copies of picked pauses as if nothing stalled, LOAD' of figure 7.
func (it *Iteration) schedule(picked []bool) *schedule {
	s := &schedule{Iteration: it, load: slices.Clone(it.Load)}
	place := make([]int, len(it.Pauses))
	for _, i := range it.byAccess {
		if picked[i] {
			place[i] = len(s.swaps)
			s.swaps = append(s.swaps, Swap{Pause: i})
		}
	}
	for _, i := range it.byNext {
		if picked[i] {
			s.byNext = append(s.byNext, place[i])
		}
	}
	s.timeOuts()
	s.timeIns()
	change := make([]graph.Bytes, 2*len(it.Took)+1)
	for i := range s.swaps {
		if x := &s.swaps[i]; x.Away() {
			change[x.Drop+1] -= it.Pauses[x.Pause].Bytes
			change[x.In+1] += it.Pauses[x.Pause].Bytes
		}
	}
	var now graph.Bytes
	for slot := range 2 * len(it.Took) {
		now += change[slot]
		s.load[slot%len(it.Took)] += now
	}
	return s
}

// timeOuts sends each variable right after its access, in order of the accesses and one after the other; it leaves when
// a slot ends after that. The stream may be busy with the last ones as the next iteration begins.
func (s *schedule) timeOuts() {
	var free time.Duration
	for range 2 {
		for i := range s.swaps {
			x := &s.swaps[i]
			p := &s.Pauses[x.Pause]
			sent := s.end(p.From)
			if p.Send > 0 {
				free = max(free, sent) + p.Send
				sent = free
			}
			x.Drop = s.firstEndedAt(sent, p.From, p.To-1)
		}
		free = max(0, free-s.Length())
	}
}

// timeIns fetches each variable ahead of its next access, in order of these and one after the other, as late as that
// does not delay an access. The stream is busy with arrivals as an iteration begins.
func (s *schedule) timeIns() {
	n := len(s.Took)
	bound := s.Length()
	for range 2 {
		for _, i := range slices.Backward(s.byNext) {
			x := &s.swaps[i]
			p := &s.Pauses[x.Pause]
			end := min(bound, s.starts[p.To%n])
			if 0 < end && end-p.Fetch < s.arrived {
				end = 0 // before the iteration
			}
			bound = end - p.Fetch
			begin := bound + time.Duration(p.To/n)*s.Length()
			x.In = max(p.From, s.lastEndedBy(begin, p.From, p.To))
		}
		bound = min(s.Length(), bound+s.Length())
	}
}

// limit delays what does not fit, LOAD” of figure 7: up to the peak, where the load grows, a slot waits until enough
// variables have left, the first in the stream first; after it, copies in wait until others are freed, those first that
// are needed last. It reports whether the load is within the limit.
func (s *schedule) limit(limit graph.Bytes) bool {
	peak, _ := s.Peak()
	within := true
	for slot := range s.Took {
		if s.load[slot] <= limit {
			continue
		}
		if slot <= peak {
			s.waitForOuts(slot, limit)
			s.holdIns(slot, limit)
		} else {
			s.holdIns(slot, limit)
			s.waitForOuts(slot, limit)
		}
		within = within && s.load[slot] <= limit
	}
	return within
}

// waitForOuts has variables leave before a slot that would leave later.
func (s *schedule) waitForOuts(slot int, limit graph.Bytes) {
	for i := range s.swaps {
		x := &s.swaps[i]
		if at, ok := s.Pauses[x.Pause].unrolled(slot, len(s.Took)); ok && at <= x.Drop {
			if s.load[slot] <= limit {
				return
			}
			s.change(x, min(x.Drop, at-1), max(x.In, at))
		}
	}
}

// holdIns has variables come back after a slot that would be back before.
func (s *schedule) holdIns(slot int, limit graph.Bytes) {
	for _, i := range slices.Backward(s.byNext) {
		x := &s.swaps[i]
		if at, ok := s.Pauses[x.Pause].unrolled(slot, len(s.Took)); ok && x.In < at && x.Drop < at {
			if s.load[slot] <= limit {
				return
			}
			s.change(x, x.Drop, at)
		}
	}
}

// change has a variable leave earlier and come back later, and keeps the load right.
func (s *schedule) change(x *Swap, drop, in int) {
	n, bytes := len(s.Took), s.Pauses[x.Pause].Bytes
	off := func(from, to int) {
		for slot := from; slot <= to; slot++ {
			s.load[slot%n] -= bytes
		}
	}
	if x.Away() {
		off(drop+1, x.Drop)
		off(x.In+1, in)
	} else {
		off(drop+1, in)
	}
	x.Drop, x.In = drop, in
}

// time returns how long an iteration takes in the steady state: a copy begins when its stream is free and the slot that
// it follows has ended, a slot when what it accesses has arrived and what leaves before it has left.
func (s *schedule) time() time.Duration {
	const limit = 32 // iterations: where a stream takes longer than the slots, copies pile up
	n := len(s.Took)
	events := s.events()
	left, here := make([]time.Duration, len(s.swaps)), make([]time.Duration, len(s.swaps))
	arrived := make([]time.Duration, len(s.Arrivals))
	var now, outs, ins time.Duration
	var before [3]time.Duration // what the last iteration took, and how far the streams were ahead of it
	for round := 0; ; round++ {
		begin := now
		fetch := func(i int32) {
			ins = max(ins, now, left[i]) + s.Pauses[s.swaps[i].Pause].Fetch
			here[i] = ins
		}
		first := events.fetch.list(n - 1) // they are needed in this iteration
		for i, a := range s.Arrivals {
			for ; len(first) > 0 && s.Pauses[s.swaps[first[0]].Pause].To%n <= a.Slot; first = first[1:] {
				fetch(first[0])
			}
			ins = max(ins, now) + a.Fetch
			arrived[i] = ins
		}
		for _, i := range first {
			fetch(i)
		}
		next := s.Arrivals
		for slot := range n {
			for ; len(next) > 0 && next[0].Slot == slot; next = next[1:] {
				now = max(now, arrived[len(s.Arrivals)-len(next)])
			}
			for _, i := range events.leave.list(slot) {
				now = max(now, left[i])
			}
			for _, i := range events.arrive.list(slot) {
				now = max(now, here[i])
			}
			now += s.Took[slot]
			for _, i := range events.send.list(slot) {
				if p := &s.Pauses[s.swaps[i].Pause]; p.Send > 0 {
					outs = max(outs, now) + p.Send
					left[i] = outs
				}
			}
			if slot == n-1 {
				break
			}
			for _, i := range events.fetch.list(slot) {
				for _, other := range events.leave.list(slot + 1) {
					ins = max(ins, left[other])
				}
				fetch(i)
			}
		}
		after := [3]time.Duration{now - begin, max(0, outs-now), max(0, ins-now)}
		if round > 0 && (after == before || round == limit) {
			return after[0]
		}
		before = after
	}
}

// events are the swaps by the slots before or after which something happens to them.
type events struct{ leave, arrive, send, fetch lists }

// lists is a list per slot.
type lists struct {
	begin []int
	all   []int32
}

func (l *lists) list(slot int) []int32 { return l.all[l.begin[slot]:l.begin[slot+1]] }

func (s *schedule) events() events {
	n := len(s.Took)
	order := make([]int, 0, len(s.swaps))
	for i := range s.swaps {
		if s.swaps[i].Away() {
			order = append(order, i)
		}
	}
	next := slices.DeleteFunc(slices.Clone(s.byNext), func(i int) bool { return !s.swaps[i].Away() })
	pause := func(i int) *Pause { return &s.Pauses[s.swaps[i].Pause] }
	return events{
		leave:  listsBy(n, order, func(i int) int { return (s.swaps[i].Drop + 1) % n }),
		arrive: listsBy(n, order, func(i int) int { return pause(i).To % n }),
		send:   listsBy(n, order, func(i int) int { return pause(i).From }),
		fetch:  listsBy(n, next, func(i int) int { return s.swaps[i].In % n }),
	}
}

// listsBy sorts numbers into lists, each in the given order.
func listsBy(n int, order []int, slot func(int) int) lists {
	l := lists{make([]int, n+2), make([]int32, len(order))}
	for _, i := range order {
		l.begin[slot(i)+2]++
	}
	for k := range n {
		l.begin[k+2] += l.begin[k+1]
	}
	for _, i := range order {
		k := slot(i) + 1
		l.all[l.begin[k]] = int32(i)
		l.begin[k]++
	}
	return l
}
