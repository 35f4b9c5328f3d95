package scheduler

import (
	"cmp"
	"slices"
	"time"

	"tensile/graph"
)

// worthwhile returns the size below which a storage is not swapped for its own sake: a thousandth of the peak before
// anything is decided, or an even part of it where there are more steps than that.
func (d *draft) worthwhile(peak graph.Bytes) graph.Bytes {
	return peak / graph.Bytes(max(1024, len(d.steps)))
}

// picker finds the largest gap of a job at a slot that is kept and was not tried in vain.
type picker struct {
	*draft
	gaps   []*gap // by rank
	ranges []stay // of those tried in vain: where they could still be away
	index  *stabbing
	rounds int
}

// stay is a range of unrolled slots of a gap, both ends included, and by what the gap is ranked.
type stay struct {
	gap      *gap
	from, to int32
	length   int32
	size     graph.Bytes
}

func (d *draft) stay(x *gap, from, to int) stay {
	return stay{x, int32(from), int32(to), int32(x.to - x.from), d.bytes[x.storage]}
}

func newPicker(d *draft) *picker {
	d.meter.count(len(d.gaps))
	p := &picker{draft: d}
	all := make([]stay, 0, len(d.gaps)/2)
	for _, x := range d.gaps {
		if x.kind == keep && d.bytes[x.storage] >= d.small {
			all = append(all, d.stay(x, x.from+1, x.to-1))
		}
	}
	p.rank(all)
	return p
}

// rank indexes gaps where they could be away: larger storages first, longer gaps first among equals.
func (p *picker) rank(all []stay) {
	p.meter.count(8 * len(all))
	slices.SortFunc(all, func(a, b stay) int {
		switch {
		case a.size != b.size:
			return cmp.Compare(b.size, a.size)
		case a.length != b.length:
			return cmp.Compare(b.length, a.length)
		}
		return cmp.Or(cmp.Compare(a.gap.from, b.gap.from), cmp.Compare(a.gap.storage, b.gap.storage))
	})
	n := int32(len(p.steps))
	intervals := make([]interval, 0, len(all)+len(all)/4)
	p.gaps = make([]*gap, len(all))
	for i, s := range all {
		p.gaps[i] = s.gap
		x := interval{low: s.from, high: s.to, key: int32(i), rank: int32(i)}
		switch {
		case x.high < n:
			intervals = append(intervals, x)
		case x.low >= n:
			x.low, x.high = x.low-n, x.high-n
			intervals = append(intervals, x)
		default:
			head := x
			head.low, head.high = 0, x.high-n
			x.high = n - 1
			intervals = append(intervals, x, head)
		}
	}
	p.index, p.ranges = newStabbing(int(n), len(all), intervals), p.ranges[:0]
}

// largest returns the largest gap that covers a slot, and its rank; nil if there is none.
func (p *picker) largest(at int) (*gap, int32) {
	for {
		p.meter.count(p.index.levels)
		rank := p.index.best(at)
		if rank == gone {
			return nil, 0
		}
		if x := p.gaps[rank]; p.maySwap(x) {
			return x, rank
		}
		p.index.remove(rank) // as many storages are swapped as may be: it will not be allowed later either
	}
}

// tried takes a gap out. One that could not be away where it was wanted is kept in mind for slots where it could.
func (p *picker) tried(x *gap, rank int32, swapped bool) {
	p.index.remove(rank)
	if swapped {
		return
	}
	if f, ok := p.fit(x, x.from+1, true); ok && f.drop < f.in {
		p.ranges = append(p.ranges, p.stay(x, f.drop+1, f.in))
	}
}

// again puts those back that were tried in vain elsewhere, and reports whether there are any. It does so a few times.
func (p *picker) again() bool {
	const most = 8
	if p.rounds++; len(p.ranges) == 0 || p.rounds > most {
		return false
	}
	p.rank(slices.Clone(p.ranges))
	return true
}

// placed is where and when a gap is swapped.
type placed struct {
	drop, in              int
	send, fetch           time.Duration
	sendTakes, fetchTakes time.Duration // 0: none is needed
}

// fit finds both copies of a gap's swap in free link time, the copy out as early and the copy in as late as possible,
// so that the storage is away at an unrolled slot (Swap Scheduling, TENSILE Algorithm 2). Anywhere drops that demand.
//
// The copy out may begin as soon as the content is made, while others still read it. Lanes are apart, so a later copy out
// would leave less room for the copy in: only on a shared channel, where it may free the only place for that, are later
// ones tried.
func (d *draft) fit(x *gap, at int, anywhere bool) (placed, bool) {
	bytes := d.g.Storages[x.storage].Bytes
	p := placed{drop: x.from, send: d.end(x.from), fetchTakes: d.in.Time(bytes)}
	wanted, back := d.start(at), d.end(at)
	if anywhere {
		wanted, back = d.start(x.to), 0
	}
	if !d.clean(x) {
		p.sendTakes = d.out.Time(bytes)
	}
	if max(p.sendTakes, p.fetchTakes) > d.period {
		return p, false
	}
	from := p.send
	if d.earlyOut {
		from = d.end(x.made)
	}
	for {
		d.meter.count(fitSteps)
		if p.sendTakes > 0 {
			var ok bool
			if p.send, ok = d.outs.earliest(from, wanted, p.sendTakes); !ok {
				return p, false
			}
			p.drop = d.firstEndedAt(p.send+p.sendTakes, x.from)
			if d.outs == d.ins {
				d.outs.book(p.send, p.sendTakes)
			}
		}
		earliest := max(p.send+p.sendTakes, back)
		var ok bool
		if slack := d.slack(x.to); slack > 0 {
			p.fetch, ok = d.ins.latest(earliest, d.start(x.to)-slack, p.fetchTakes)
		}
		if !ok {
			p.fetch, ok = d.ins.latest(earliest, d.start(x.to), p.fetchTakes)
		}
		if d.outs == d.ins && p.sendTakes > 0 {
			d.outs.release(p.send, p.sendTakes)
			if !ok {
				from = d.outs.following(p.send)
				continue
			}
		}
		if !ok {
			return p, false
		}
		p.in = d.lastEndedBy(p.fetch, x.to-1)
		return p, anywhere || p.drop < at && at <= p.in
	}
}

// slack is by how much the step before an unrolled one may be shorter than it is taken to be.
func (d *draft) slack(to int) time.Duration {
	if d.job.Slack == nil {
		return 0
	}
	n := len(d.steps)
	return d.job.Slack[d.steps[(to-1+n)%n].op]
}

// fitSteps are the steps of a look for two places on the lanes.
const fitSteps = 40

// try swaps a gap if that costs no time and the storage is then away at the peak.
func (d *draft) try(x *gap) bool {
	at, _ := d.peak()
	at, _ = d.covers(x, at)
	p, ok := d.fit(x, at, false)
	if ok {
		d.carry(x, p)
	}
	return ok
}

// carry swaps a gap as placed.
func (d *draft) carry(x *gap, p placed) {
	d.outs.book(p.send, p.sendTakes)
	d.ins.book(p.fetch, p.fetchTakes)
	x.send, x.fetch, x.copied = p.send, p.fetch, p.sendTakes > 0
	d.set(x, swap, p.drop, p.in)
}

// swapFreely swaps at the peaks, the storage of all jobs that is largest for its job's weight first, until the peaks' sum
// is at most the target or no swap is left that costs no time. It returns how many it made.
func swapFreely(jobs []*draft, target graph.Bytes) int {
	sum := sumOfPeaks(jobs)
	if sum <= target {
		return 0
	}
	all := make([]candidate, len(jobs))
	for i, d := range jobs {
		all[i].picker = newPicker(d)
		all[i].find()
	}
	swapped := 0
	for sum > target {
		best := largest(all)
		if best == nil {
			return swapped
		}
		_, before := best.peak()
		ok := best.try(best.gap)
		best.tried(best.gap, best.rank, ok)
		if ok {
			swapped++
		}
		_, after := best.peak()
		sum += after - before
		best.find()
	}
	return swapped
}

// candidate is the gap of a job that is tried next; nil: none is left.
type candidate struct {
	*picker
	gap  *gap
	rank int32
	size graph.Bytes
}

// find looks for the next one. It stays the same until something of the job is tried.
func (c *candidate) find() {
	at, _ := c.peak()
	c.gap, c.rank = c.largest(at)
	if c.gap == nil && c.again() {
		c.gap, c.rank = c.largest(at)
	}
	if c.gap != nil {
		c.size = c.bytes[c.gap.storage]
	}
}

// largest returns the candidate that is largest for its job's weight, the first of equals; nil: no job has one.
func largest(all []candidate) *candidate {
	var best *candidate
	for i := range all {
		c := &all[i]
		if c.gap != nil && (best == nil || c.size*graph.Bytes(best.job.weight()) > best.size*graph.Bytes(c.job.weight())) {
			best = c
		}
	}
	if len(all) > 0 {
		all[0].meter.count(len(all))
	}
	return best
}

func sumOfPeaks(jobs []*draft) graph.Bytes {
	var sum graph.Bytes
	for _, d := range jobs {
		_, peak := d.peak()
		sum += peak
	}
	return sum
}
