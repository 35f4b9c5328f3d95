package draft

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"
	"time"

	"tensile/graph"
	"tensile/graph/cost"
)

// worthwhile returns the size below which a storage is not swapped for its own sake: a thousandth of the peak before
// anything is decided, or an even part of it where there are more steps than that.
func (d *Draft) worthwhile(peak graph.Bytes) graph.Bytes {
	return peak / graph.Bytes(max(1024, len(d.steps)))
}

// smallest is the part of a job's target below which a storage is not swapped for its own sake.
const smallest = 1 << 14

// Picker finds the largest gap of a job at a slot, among those that are kept and that Remove has not taken out.
type Picker struct {
	*Draft
	gaps   []*Gap // by rank
	wraps  []*Gap // that are still to be tried for the time between two iterations, largest storage first
	ranges []stay // where the gaps that were tried in vain could still be away
	index  *stabbing
	rounds int
}

// stay is a range of unrolled slots of a gap, both ends included, and by what the gap is ranked.
type stay struct {
	gap      *Gap
	from, to int32
	length   int32
	size     graph.Bytes
}

func (d *Draft) stay(x *Gap, from, to int) stay {
	return stay{x, int32(from), int32(to), int32(x.to - x.from), d.bytes[x.storage]}
}

func NewPicker(d *Draft) *Picker {
	d.meter.count(len(d.gaps))
	p := &Picker{Draft: d}
	all := make([]stay, 0, len(d.gaps)/2)
	for _, x := range d.gaps {
		if x.kind == keep && d.bytes[x.storage] >= d.small {
			all = append(all, d.stay(x, x.from+1, x.to-1))
		}
	}
	p.rank(all)
	if d.beside > 0 {
		p.wraps = d.wraps(p.gaps)
	}
	return p
}

// rank indexes gaps where they could be away: larger storages first, longer gaps first among equals.
func (p *Picker) rank(all []stay) {
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
	p.gaps = make([]*Gap, len(all))
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

// Largest returns the largest gap that covers a slot, and its rank; nil if there is none.
func (p *Picker) Largest(at int) (*Gap, int32) {
	if at == boundary {
		return p.largestWrap(), wrapped
	}
	for {
		p.meter.count(p.index.levels)
		rank := p.index.best(at)
		if rank == gone {
			return nil, 0
		}
		if x := p.gaps[rank]; x.kind == keep && p.MaySwap(x) {
			return x, rank
		}
		p.index.remove(rank) // it is swapped; or as many storages are as may be: it will not be allowed later either
	}
}

// Remove takes the gap of a rank out of the candidates.
func (p *Picker) Remove(rank int32) {
	if rank == wrapped {
		p.wraps = p.wraps[1:]
		return
	}
	p.index.remove(rank)
}

// tried removes a gap from the candidates. If it could not be swapped at this peak, the slots where it could be are
// remembered for later peaks.
func (p *Picker) tried(x *Gap, rank int32, swapped bool) {
	p.Remove(rank)
	if swapped || rank == wrapped {
		return
	}
	if f, ok := p.fit(x, x.from+1, true); ok && f.drop < f.in {
		p.ranges = append(p.ranges, p.stay(x, f.drop+1, f.in))
	}
}

// retry makes the gaps candidates again that were tried in vain at other peaks, and reports whether there are any. It
// does so a few times.
func (p *Picker) retry() bool {
	const maxRounds = 8
	if p.rounds++; len(p.ranges) == 0 || p.rounds > maxRounds {
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

// fit finds free link time for both copies of a gap's swap, the copy out as early and the copy in as late as possible,
// so that the storage is away at an unrolled slot (Swap Scheduling, TENSILE Algorithm 2), or with anywhere at any slot.
//
// The copy out may start as soon as the content is made, while others still read it. With a lane for each direction a
// later copy out never helps. On a shared channel it may free the only place for the copy in, so there later ones are
// tried too.
func (d *Draft) fit(x *Gap, at int, anywhere bool) (placed, bool) {
	bytes := d.g.Storages[x.storage].Bytes
	p := placed{drop: x.from, send: d.end(x.from), fetchTakes: d.fetchTime(x)}
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
	if !d.style.LateOut {
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
			if d.oneChannel() {
				d.copyOnWrite()
				d.outs.book(p.send, p.sendTakes)
			}
		}
		earliest := max(p.send+p.sendTakes, back)
		var ok bool
		if slack := d.slack(x.to); slack > 0 {
			p.fetch, ok = d.ins.latestStart(earliest, d.start(x.to)-slack, p.fetchTakes)
		}
		if !ok {
			p.fetch, ok = d.ins.latestStart(earliest, d.start(x.to), p.fetchTakes)
		}
		if d.oneChannel() && p.sendTakes > 0 {
			d.outs.release(p.send, p.sendTakes)
			if !ok {
				from = d.outs.following(p.send)
				continue
			}
		}
		if !ok {
			return p, false
		}
		if p.in = x.to - 1; !x.dies {
			p.in = d.lastEndedBy(p.fetch, x.to-1)
		}
		return p, anywhere || p.drop < at && at <= p.in
	}
}

// fetchTime is how long the copy in of a gap's swap takes: no time where there is none.
func (d *Draft) fetchTime(x *Gap) time.Duration {
	if x.dies {
		return 0
	}
	return d.in.Time(d.g.Storages[x.storage].Bytes)
}

// slack is by how much the step before an unrolled slot may be shorter than predicted.
func (d *Draft) slack(to int) time.Duration {
	if d.job.Slack == nil {
		return 0
	}
	n := len(d.steps)
	return d.job.Slack[d.steps[(to-1+n)%n].Op]
}

// fitSteps is the work that looking for two places on the lanes counts as.
const fitSteps = 40

// Try swaps a gap if that costs no time and the storage is then away where the draft needs the most.
func (d *Draft) Try(x *Gap) bool {
	at, _ := d.High()
	if at == boundary {
		return d.tryBetween(x)
	}
	at, _ = d.Covers(x, at)
	p, ok := d.fit(x, at, false)
	if ok {
		d.carry(x, p)
	}
	return ok
}

// TryAnywhere swaps a gap if that costs no time and the storage is then away for a slot or more.
func (d *Draft) TryAnywhere(x *Gap) bool {
	p, ok := d.fit(x, x.from+1, true)
	if ok = ok && p.drop < p.in; ok {
		d.carry(x, p)
	}
	return ok
}

// Swap swaps a gap where the policy says: the storage is away in the slots drop+1 to in. The copy out begins after the
// access before the gap, the copy in after the slot in; neither is booked, and the draft is no longer Exact.
func (d *Draft) Swap(x *Gap, drop, in int) {
	if drop < x.from || drop >= in || in >= x.to {
		panic(fmt.Sprintf("draft: a gap from %d to %d does not hold the slots %d to %d", x.from, x.to, drop+1, in))
	}
	d.exact = false
	d.set(x, swap, drop, in)
}

// SwapSmall makes small storages candidates for swaps too.
func (d *Draft) SwapSmall() { d.small = 0 }

// carry swaps a gap as placed.
func (d *Draft) carry(x *Gap, p placed) {
	d.book(stretch{p.send, p.send + p.sendTakes}, stretch{p.fetch, p.fetch + p.fetchTakes})
	x.send, x.fetch, x.copied = p.send, p.fetch, p.sendTakes > 0
	d.set(x, swap, p.drop, p.in)
}

// SwapFreely makes swaps that cost no time, the storage first that is largest for its job's weight among all jobs'
// peaks, until the sum of the peaks is at most the target or no such swap is left. It returns how many it made.
func SwapFreely(jobs []*Draft, target graph.Bytes) int {
	sum := SumOfPeaks(jobs)
	if sum <= target {
		return 0
	}
	for _, d := range jobs {
		_, high := d.High()
		d.small = min(d.small, Portion(high, target, sum)/smallest)
	}
	all := make([]candidate, len(jobs))
	for i, d := range jobs {
		all[i].Picker = NewPicker(d)
		all[i].find()
	}
	swapped := 0
	for sum > target {
		best := largestCandidate(all)
		if best == nil {
			return swapped
		}
		ok := best.MaySwap(best.gap) && best.Try(best.gap) // another job may have taken what was left of the host
		best.tried(best.gap, best.rank, ok)
		if ok {
			swapped++
		}
		before := best.high
		best.find()
		sum += (best.high - before) * best.copies
	}
	return swapped
}

// candidate is the gap of a job that is tried next; nil: none is left.
type candidate struct {
	*Picker
	gap  *Gap
	rank int32
	size graph.Bytes
	high graph.Bytes // what the job needs
}

// find looks for the next one. It stays the same until something of the job is tried.
func (c *candidate) find() {
	at, high := c.High()
	c.high = high
	c.gap, c.rank = c.Largest(at)
	if c.gap == nil && c.retry() {
		c.gap, c.rank = c.Largest(at)
	}
	if c.gap != nil {
		c.size = c.bytes[c.gap.storage]
	}
}

// largestCandidate returns the candidate that is largest for its job's weight, the first of equals; nil: no job has
// one.
func largestCandidate(all []candidate) *candidate {
	var best *candidate
	for i := range all {
		c := &all[i]
		if c.gap == nil {
			continue
		}
		if best == nil || c.size*graph.Bytes(best.job.Worth()) > best.size*graph.Bytes(c.job.Worth()) {
			best = c
		}
	}
	if len(all) > 0 {
		all[0].meter.count(len(all))
	}
	return best
}

// SumOfPeaks adds up the peaks of all jobs, or what they need where they have others beside them.
func SumOfPeaks(jobs []*Draft) graph.Bytes {
	var sum graph.Bytes
	for _, d := range jobs {
		_, high := d.High()
		sum += high * d.copies
	}
	return sum
}

// AfterSwaps estimates, per slot, what swaps that cost no time leave on the device: the footprint less what both lanes
// can carry, out before the slot begins and in after its end.
func (d *Draft) AfterSwaps() []graph.Bytes {
	slots := d.curve.Slots()
	carries := func(l cost.Link, t time.Duration) graph.Bytes {
		if l.Rate <= 0 {
			return graph.Bytes(never)
		}
		return graph.Bytes(float64(l.Rate) / 1e9 * float64(t))
	}
	for slot := range slots {
		away := min(carries(d.out, d.start(slot)), carries(d.in, d.period-d.end(slot)))
		slots[slot] = max(0, slots[slot]-away)
	}
	return slots
}

// Portion returns x*part/whole, where the part is at most the whole.
func Portion[T ~int64](x, part, whole T) T {
	high, low := bits.Mul64(uint64(x), uint64(part))
	quotient, _ := bits.Div64(high, low, uint64(whole))
	return T(quotient)
}
