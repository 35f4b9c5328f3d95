package draft

import (
	"time"

	"tensile/cost"
	"tensile/graph"
	"tensile/peak"
)

// smallTensor is the part of Draft.small below which a storage does not count at all.
const smallTensor = 64

// zeroStall returns a lower bound of the peak of all plans with the steps of a draft, in which nothing is decided, that
// swap without a stall and do not recompute. What is away in a slot is at most what the copy-out lane can have carried
// before the slot begins, each storage from when its content was made on, and at most what the copy-in lane can carry
// after its end, each storage before its next access. Parts of storages count, and both lanes are free but for this
// slot.
//
// It takes n log n: as slots go by, gaps begin and end, and two flows keep what their lanes can carry.
func (d *Draft) zeroStall() graph.Bytes {
	n := len(d.steps)
	d.meter.count(8*n + 40*len(d.gaps))
	kept := d.unswapped()
	begin, end := make([][]piece, n+1), make([][]piece, n+1)
	for _, x := range d.gaps {
		clean := d.clean(x)
		for _, p := range pieces(x, n) {
			p.clean = clean
			begin[p.from], end[p.to] = append(begin[p.from], p), append(end[p.to], p)
		}
	}
	outs, ins := newFlow(d, d.out, -n, d.end, 1), newFlow(d, d.in, 0, d.start, -1)
	var clean, tiny, bound graph.Bytes
	change := func(p piece, sign graph.Bytes) {
		bytes := sign * d.copied(p.gap.storage)
		if bytes < d.small/smallTensor && -bytes < d.small/smallTensor {
			tiny += bytes // taken to be away at no cost, for speed
			return
		}
		if p.clean {
			clean += bytes
		} else {
			outs.add(p.gap.made-p.shift+n+1, 2*n, bytes)
		}
		ins.add(0, p.gap.to-p.shift, bytes)
	}
	for slot := range n {
		for _, p := range end[slot] {
			change(p, -1)
		}
		for _, p := range begin[slot] {
			change(p, 1)
		}
		away := min(clean+outs.carries(0, slot+n, d.start(slot)), ins.carries(slot+1, 2*n, d.end(slot)))
		bound = max(bound, kept[slot]-away-tiny)
	}
	return bound
}

// copied is the size of a storage as copied, not as placed.
func (d *Draft) copied(s graph.StorageID) graph.Bytes { return d.g.Storages[s].Bytes }

// unswapped returns what the steps have on the device if nothing leaves it in gaps, per slot, without alignment.
func (d *Draft) unswapped() []graph.Bytes {
	return d.footprint(d.copied, func(op graph.OpID) graph.Bytes { return d.scratch[op] })
}

// piece is the part of a gap's slots, [from, to), that lies in one iteration: shift slots after that in which it began.
type piece struct {
	gap             *Gap
	from, to, shift int
	clean           bool // no copy out is needed
}

func pieces(x *Gap, n int) []piece {
	from, to := x.from+1, x.to
	var all []piece
	if from < n {
		all = append(all, piece{gap: x, from: from, to: min(to, n)})
	}
	if to > n {
		all = append(all, piece{gap: x, from: max(from, n) - n, to: to - n, shift: n})
	}
	return all
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

func newFlow(d *Draft, l cost.Link, first int, at func(slot int) time.Duration, sign graph.Bytes) *flow {
	f := &flow{rate: float64(l.Rate) / 1e9, sign: sign}
	if f.rate <= 0 {
		return f
	}
	points := make([]graph.Bytes, 2*len(d.steps))
	for i := range points {
		points[i] = sign * f.allows(at(first+i))
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
func (f *flow) carries(from, to int, by time.Duration) graph.Bytes {
	if f.curve == nil || from >= to {
		return f.loads
	}
	const rounding = 2
	return max(0, min(f.loads, f.sign*f.allows(by)-f.curve.Max(from, to)+rounding))
}

// Unswapped estimates, per slot, what swaps that cost no time leave on the device: the footprint less what both
// lanes can carry, out before the slot begins and in after its end.
func (d *Draft) Unswapped() []graph.Bytes {
	slots := d.curve.Slots()
	carry := func(l cost.Link, t time.Duration) graph.Bytes {
		return graph.Bytes(float64(l.Rate) * float64(t) / 1e9)
	}
	for slot := range slots {
		away := min(carry(d.out, d.start(slot)), carry(d.in, d.period-d.end(slot)))
		slots[slot] -= away
	}
	return slots
}
