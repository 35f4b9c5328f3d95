package draft

import (
	"slices"
	"time"

	"tensile/graph"
	"tensile/graph/cost"
	"tensile/peak"
	"tensile/plan"
	"tensile/scheduler"
)

// smallTensor is the part of Draft.small below which a storage does not count at all.
const smallTensor = 64

// Bounds works out the bounds of job i, for the order in which its plan executes the ops first, and what that order has
// on the device at its peak if nothing is swapped. The job may have the whole link whenever the others do not use it,
// whatever its share.
func (s *Session) Bounds(i int, p *plan.Plan) (bounds scheduler.Bounds, kept graph.Bytes) {
	workingSet := scheduler.WorkingSetOf(s.Request.Jobs[i], 1).Bytes
	d := s.Draft(i, firstSteps(s.Request.Jobs[i].Graph, p), Style{})
	d.out, d.in = s.Request.Out, s.Request.In
	return scheduler.Bounds{
		WorkingSet: scheduler.WorkingSetOf(s.Request.Jobs[i], s.Request.Align).Bytes,
		ZeroStall:  max(workingSet, d.zeroStall()),
	}, slices.Max(d.unswapped())
}

// zeroStall returns a lower bound of the arenas of all plans with the steps of a draft, in which nothing is decided,
// that swap without a stall and do not recompute. It is the bound that bounded explains, for no time more than vanilla.
func (d *Draft) zeroStall() graph.Bytes {
	b := d.bounded(nil)
	var bound graph.Bytes
	b.sweep(func(s *sight) { bound = max(bound, s.kept-s.mostAbsent(0)) })
	return bound
}

// bounded is what bounds of a job's memory are made of: the slots of a draft in which nothing is decided, and the gaps
// around each.
//
// At an instant a storage is away that nothing at that instant uses and whose bytes are not in the arena. If it was
// copied, the copy-out lane has carried it, between the making of its content and that instant, and the copy-in lane
// will, between that instant and its next access. So in each slot what is away is at most what the copy-out lane can
// have carried before the slot begins, each storage from when its content was made on, and at most what the copy-in
// lane can carry after the slot's end, each storage before its next access; the content that the host has needs no
// copy out. Parts of storages count, and both lanes are free but for this slot. In plans that lose time, or recompute,
// every stretch of an iteration is at most that time longer than without: latest and start are times that hold for all
// plans in which first executions have the draft's order.
//
// A sweep takes n log n: as slots go by, gaps begin and end, and two flows keep what their lanes can carry.
type bounded struct {
	*Draft
	latest     []time.Duration // per slot: when it starts at the latest in an iteration as long as vanilla
	kept       []graph.Bytes   // per slot: what is there if nothing is away
	pieces     []piece         // the parts of gaps
	begin, end lists[int32]    // per slot: pieces that begin there, and that ended before it
	again      *knapsack       // what can be made again; nil: nothing
}

// bounded looks through a draft in which nothing is decided.
func (d *Draft) bounded(again *knapsack) *bounded {
	n := len(d.steps)
	d.meter.count(8 * n)
	b := &bounded{Draft: d, latest: make([]time.Duration, n+1), again: again,
		pieces: make([]piece, 0, len(d.gaps)+len(d.gaps)/4)}
	b.kept = d.unswapped()
	b.latest[n] = d.period
	for slot := n - 1; slot >= 0; slot-- {
		b.latest[slot] = b.latest[slot+1] - d.latency[d.steps[slot].Op]
	}
	for _, x := range d.gaps {
		d.meter.count(16)
		from, to, clean := x.from+1, x.to, d.clean(x)
		if from < n {
			b.pieces = append(b.pieces, piece{x, from, min(to, n), 0, clean})
		}
		if to > n {
			b.pieces = append(b.pieces, piece{x, max(from, n) - n, to - n, n, clean})
		}
	}
	b.begin = listed(n+1, b.pieces, func(p *piece) int { return p.from })
	b.end = listed(n+1, b.pieces, func(p *piece) int { return p.to })
	return b
}

// listed lists the numbers of pieces by a slot of each.
func listed(slots int, pieces []piece, slot func(*piece) int) lists[int32] {
	l := lists[int32]{make([]int32, slots+2), make([]int32, len(pieces))}
	next := l.begin[1:]
	for i := range pieces {
		next[slot(&pieces[i])+1]++
	}
	for i := range slots {
		next[i+1] += next[i]
	}
	for i := range pieces {
		at := slot(&pieces[i])
		l.all[next[at]] = int32(i)
		next[at]++
	}
	return l
}

// sight is what a sweep sees of a slot.
type sight struct {
	kept    graph.Bytes // there, if nothing is away
	idle    graph.Bytes // the part that the slot's step does not use
	clean   graph.Bytes // of what is idle, what the host has
	tiny    graph.Bytes // taken to be away at no cost, for speed
	out, in carried
	again   *knapsack // of what is idle; nil: nothing is made again
}

// mostAbsent is the most that can be away without recomputation if an iteration takes so much longer than vanilla.
func (s *sight) mostAbsent(longer time.Duration) graph.Bytes {
	return min(s.clean+s.out.bytesAfter(longer), s.in.bytesAfter(longer)) + s.tiny
}

// sweep shows every slot.
func (b *bounded) sweep(show func(*sight)) {
	n := len(b.steps)
	outs := newFlow(n, b.out, func(i int) time.Duration { return b.Draft.end(i - n) }, 1)
	ins := newFlow(n, b.in, func(i int) time.Duration { return b.latest[i%n] + time.Duration(i/n)*b.period }, -1)
	s := sight{again: b.again}
	change := func(p *piece, sign graph.Bytes) {
		bytes := sign * b.copied(p.gap.storage)
		if p.gap.dies || bytes < b.small/smallTensor && -bytes < b.small/smallTensor {
			s.tiny += bytes
			return
		}
		s.idle += bytes
		if p.clean {
			s.clean += bytes
		} else {
			outs.add(p.gap.made-p.shift+n+1, 2*n, bytes)
		}
		ins.add(0, p.gap.to-p.shift, bytes)
		b.again.add(p.gap, sign)
	}
	for slot := range n {
		ended, begun := b.end.list(slot), b.begin.list(slot)
		b.meter.count(8 + 20*(len(ended)+len(begun)))
		for _, i := range ended {
			change(&b.pieces[i], -1)
		}
		for _, i := range begun {
			change(&b.pieces[i], 1)
		}
		s.kept = b.kept[slot]
		s.out, s.in = outs.carries(0, slot+n, b.latest[slot]), ins.carries(slot+1, 2*n, b.Draft.end(slot))
		show(&s)
	}
}

// copied is the size of a storage as copied, not as placed.
func (d *Draft) copied(s graph.StorageID) graph.Bytes { return d.g.Storages[s].Bytes }

// unswapped returns what the steps have on the device if nothing leaves it in gaps, per slot, without alignment.
func (d *Draft) unswapped() []graph.Bytes {
	return d.footprint(d.copied, d.scratchOf)
}

// piece is the part of a gap's slots, [from, to), that lies in one iteration: shift slots after that in which it began.
type piece struct {
	gap             *Gap
	from, to, shift int
	clean           bool // no copy out is needed
}

// flow is what a lane that never idles can carry between the times at which its loads become ready and one at which it
// has to be done; backwards in time for the copy-in lane.
//
// By a time D it carries the minimum, over all earlier times t, of the loads ready by t plus what its rate allows
// from t to D. The curve holds, per slot whose time can be t, what the rate allows until then, less the loads ready
// by then.
type flow struct {
	rate  float64 // bytes per nanosecond; 0: unlimited
	sign  graph.Bytes
	curve *peak.Curve
	loads graph.Bytes
}

// newFlow returns the flow of a lane over two iterations of n slots; at is the time of each slot's point.
func newFlow(n int, l cost.Link, at func(slot int) time.Duration, sign graph.Bytes) *flow {
	f := &flow{rate: float64(l.Rate) / 1e9, sign: sign}
	if f.rate <= 0 {
		return f
	}
	points := make([]graph.Bytes, 2*n)
	for i := range points {
		points[i] = sign * f.allows(at(i))
	}
	f.curve = peak.NewCurve(points)
	return f
}

// allows returns what the lane carries in a time.
func (f *flow) allows(t time.Duration) graph.Bytes { return graph.Bytes(f.rate * float64(t)) }

// add adds a load that is ready at the points [from, to).
func (f *flow) add(from, to int, bytes graph.Bytes) {
	f.loads += bytes
	if f.curve != nil {
		f.curve.Add(from, to, -bytes)
	}
}

// carries returns what the lane can have carried by a time, where the points [from, to) lie before it.
func (f *flow) carries(from, to int, by time.Duration) carried {
	c := carried{loads: f.loads, most: f.loads}
	if f.curve != nil && from < to {
		const rounding = 2
		c.rate, c.most = f.rate, f.sign*f.allows(by)-f.curve.Max(from, to)+rounding
	}
	return c
}

// carried is what a lane can have carried of its loads, and what it carries more in more time.
type carried struct {
	loads, most graph.Bytes
	rate        float64 // bytes per nanosecond
}

func (c carried) bytesAfter(longer time.Duration) graph.Bytes {
	return max(0, min(c.loads, c.most+graph.Bytes(c.rate*float64(longer))))
}
