package capuchin

import (
	"cmp"
	"slices"
	"time"

	"tensile/graph"
)

// candidate is an interval of a storage between two accesses, the evicted-access and the back-access, in which it may
// leave the device.
type candidate struct {
	storage    graph.StorageID
	from, back int           // ops
	free       time.Duration // FT, the free time
	bytes      graph.Bytes

	srcs   []graph.StorageID // from which a replay begins; what persists is left out
	replay time.Duration     // rp_time; 0: it cannot be replayed
	extra  time.Duration     // ext_time: what others' replays take longer without it
	done   bool              // it is swapped or recomputed
}

// observed is an iteration as passive mode has seen it.
type observed struct {
	*facts
	start, end []time.Duration // per op, waits left out
	load       []graph.Bytes   // per op: what is on the device without a limit, less what is decided to leave
	over       []int           // per op: those before it that are above the capacity
	fetched    lane            // copies in of swaps that are decided
	all        []*candidate
	guide      *guide
	swapped    []*candidate
	window     int // the last op in the peak
}

func observe(f *facts) *observed {
	n := len(f.g.Ops)
	o := &observed{facts: f, start: make([]time.Duration, n), end: make([]time.Duration, n),
		guide: newGuide(n), window: -1}
	var now time.Duration
	for k := range n {
		o.start[k] = now
		now += f.latency[k]
		o.end[k] = now
	}
	m := newMachine(f, o.guide)
	for s := range m.resident { // with room for all, what persists never leaves
		m.resident[s] = f.g.Storages[s].Role.Persistent()
	}
	m.expect()
	o.load = m.load
	for k, bytes := range o.load {
		if bytes > o.capacity {
			o.window = k
		}
	}
	o.candidates()
	return o
}

// candidates lists the intervals that reach over the peak, those with the longest free time first. The notes have "an
// access in the peak"; what is on the device in the peak, as tinyflow takes it, is what can save there. Storages below
// a thousandth of the largest load are left to passive mode; the first author's code leaves those below 2 MiB.
func (o *observed) candidates() {
	var peak graph.Bytes
	for _, bytes := range o.load {
		peak = max(peak, bytes)
	}
	o.over = make([]int, len(o.load)+1)
	o.countAbove()
	for s, uses := range o.uses {
		if o.bytes[s] < peak/1024 {
			continue
		}
		size := o.g.Storages[s].Bytes
		for i := 1; i < len(uses); i++ {
			from, back := uses[i-1], uses[i]
			if back <= from+1 || o.over[back] == o.over[from+1] {
				continue
			}
			c := &candidate{storage: graph.StorageID(s), from: from, back: back, bytes: o.bytes[s],
				free: o.start[back] - o.in.Time(size) - o.end[from] - o.out.Time(size)}
			o.all = append(o.all, c)
		}
	}
	slices.SortStableFunc(o.all, func(a, b *candidate) int {
		return cmp.Or(cmp.Compare(b.free, a.free), cmp.Compare(b.bytes, a.bytes), cmp.Compare(a.storage, b.storage),
			cmp.Compare(a.from, b.from))
	})
}

// saves reports whether an interval reaches over an op that is still above the capacity.
func (o *observed) saves(c *candidate) bool { return o.over[c.back] > o.over[c.from+1] }

// countAbove counts the ops above the capacity.
func (o *observed) countAbove() {
	o.session.Count(len(o.load) / 4)
	for k, bytes := range o.load {
		o.over[k+1] = o.over[k]
		if bytes > o.capacity {
			o.over[k+1]++
		}
	}
}

// hybrid decides what leaves until what is left fits (Algorithm 1). r need not be t: then t is looked at again, as long
// as it still saves.
func (o *observed) hybrid(recompute bool) {
	if recompute {
		for _, c := range o.all {
			o.sources(c)
		}
	}
	for _, t := range o.all {
		if t.done || !o.saves(t) {
			continue
		}
		begin, hidden := o.hides(t)
		if hidden || !recompute {
			o.swap(t, begin, hidden)
			continue
		}
		for !t.done && o.saves(t) {
			r := o.best()
			if r == nil || o.in.Time(o.g.Storages[t.storage].Bytes) <= r.replay+r.extra {
				o.swap(t, begin, hidden)
				break
			}
			o.recompute(r)
		}
	}
	o.triggers()
}

// hides looks for an in-trigger that hides the copy in wholly: outside of the peak, in free time of the link.
func (o *observed) hides(c *candidate) (time.Duration, bool) {
	if c.back <= o.window {
		return 0, false
	}
	size := o.g.Storages[c.storage].Bytes
	earliest := max(o.end[c.from]+o.out.Time(size), o.end[o.window])
	return o.fetched.latestBegin(earliest, o.start[c.back], o.in.Time(size))
}

// swap has a storage copied out after the evicted-access.
func (o *observed) swap(c *candidate, begin time.Duration, hidden bool) {
	c.done = true
	if hidden {
		o.fetched.book(begin, o.in.Time(o.g.Storages[c.storage].Bytes))
	}
	o.swapped = append(o.swapped, c)
	o.markAbsent(c, false)
}

// markAbsent has a storage gone between the evicted-access and the back-access.
func (o *observed) markAbsent(c *candidate, remake bool) {
	o.guide.leave[c.from] = append(o.guide.leave[c.from], departure{c.storage, c.back, remake})
	for k := c.from + 1; k < c.back; k++ {
		o.load[k] -= c.bytes
	}
	o.countAbove()
}

// triggers gives each swap its in-trigger. A direction of the link is exclusive, so the copies in end one before the
// other, the last one at its back-access; each is triggered by the latest access before it has to begin.
func (o *observed) triggers() {
	slices.SortStableFunc(o.swapped, func(a, b *candidate) int {
		return cmp.Or(cmp.Compare(b.back, a.back), cmp.Compare(a.storage, b.storage))
	})
	next := o.end[len(o.end)-1]
	for _, c := range o.swapped {
		next = min(next, o.start[c.back]) - o.in.Time(o.g.Storages[c.storage].Bytes)
		at, _ := slices.BinarySearchFunc(o.end, next+1, func(a, b time.Duration) int { return cmp.Compare(a, b) })
		at = max(at-1, c.from+1)
		o.guide.bring[at] = append(o.guide.bring[at], c.storage)
	}
}

// lane is when a direction of the link is busy, in order.
type lane []busy

type busy struct{ from, to time.Duration }

// latestBegin finds the latest begin of a copy between two times.
func (l lane) latestBegin(earliest, end, takes time.Duration) (time.Duration, bool) {
	for i := len(l) - 1; i >= -1; i-- {
		begin := end - takes
		if begin < earliest {
			return 0, false
		}
		if i < 0 || l[i].to <= begin {
			return begin, true
		}
		end = min(end, l[i].from)
	}
	return 0, false
}

func (l *lane) book(begin, takes time.Duration) {
	at, _ := slices.BinarySearchFunc(*l, begin, func(b busy, t time.Duration) int { return cmp.Compare(b.from, t) })
	*l = slices.Insert(*l, at, busy{begin, begin + takes})
}
