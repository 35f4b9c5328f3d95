package scheduler

import (
	"cmp"
	"math/bits"
	"slices"
	"time"

	"tensile/graph"
)

// remedy is one way to lower the footprint of a job's peak slot, whatever it costs.
type remedy struct {
	gap        *gap
	kind       kind
	drop, in   int
	out, fetch stretch       // link time that a swap takes
	cost       time.Duration // time that the job is expected to lose
	gain       uint64        // bytes times slots that are above the goal and lose them
}

// overhead is what every copy costs the job beside the link time: an event and a wait.
const overhead = time.Microsecond

// compare orders remedies of two jobs by cost per gain, then by size, larger first, then by the slot of the access
// behind the gap: what is recomputed for an early access may serve as input of what a later one needs. The cost counts
// by the job's weight, and the size against it.
func compare(a remedy, d *draft, b remedy, e *draft) int {
	v, w := d.job.weight(), e.job.weight()
	high, low := bits.Mul64(uint64(a.cost/time.Microsecond)*uint64(v), b.gain)
	otherHigh, otherLow := bits.Mul64(uint64(b.cost/time.Microsecond)*uint64(w), a.gain)
	return cmp.Or(cmp.Compare(high, otherHigh), cmp.Compare(low, otherLow),
		cmp.Compare(e.bytes[b.gap.storage]*graph.Bytes(v), d.bytes[a.gap.storage]*graph.Bytes(w)),
		cmp.Compare(a.gap.to, b.gap.to), cmp.Compare(a.gap.storage, b.gap.storage))
}

// force lowers the sum of the peaks to the target by the remedies that cost least for what they gain. Each job's goal is
// its share of the target. It reports whether it succeeded; otherwise every peak is a working set, or its job may swap
// no more storages.
func force(jobs []*draft, target graph.Bytes, o Options) bool {
	found := make([][]remedy, len(jobs))
	sum := sumOfPeaks(jobs)
	for i, d := range jobs {
		_, peak := d.peak()
		d.goal = share(peak, target, sum)
		found[i] = d.remedies(o)
	}
	for sum > target {
		best := -1
		for i, all := range found {
			if len(all) > 0 && (best < 0 || compare(all[0], jobs[i], found[best][0], jobs[best]) < 0) {
				best = i
			}
		}
		if best < 0 {
			return false
		}
		jobs[best].meter.count(4 * len(jobs))
		_, before := jobs[best].peak()
		jobs[best].applyAll(found[best], target-(sum-before))
		_, after := jobs[best].peak()
		sum += after - before
		found[best] = jobs[best].remedies(o)
	}
	return true
}

// share returns peak*target/sum, or the peak itself when the sum is not above the target.
func share(peak, target, sum graph.Bytes) graph.Bytes {
	if sum <= target {
		return peak
	}
	high, low := bits.Mul64(uint64(peak), uint64(target))
	quotient, _ := bits.Div64(high, low, uint64(sum)) // target < sum, so it is at most the peak
	return graph.Bytes(quotient)
}

// applyAll carries out remedies, cheapest first, until the peak is low enough or has moved. A recomputation inserts a
// step, after which the others must be found anew.
func (d *draft) applyAll(remedies []remedy, enough graph.Bytes) {
	at, _ := d.peak()
	for _, r := range remedies {
		d.meter.count(fitSteps)
		if r.kind == recompute {
			d.recompute(r)
			return
		}
		if !d.maySwap(r.gap) {
			continue // one before it was the last that may
		}
		d.outs.book(r.out.from, r.out.to-r.out.from)
		d.ins.book(r.fetch.from, r.fetch.to-r.fetch.from)
		if r.gap.kind != swap {
			r.gap.send, r.gap.fetch, r.gap.copied = r.out.from, r.fetch.from, r.out.from < r.out.to
		}
		d.set(r.gap, swap, r.drop, r.in)
		r.gap.cost = r.cost
		if now, peak := d.peak(); now != at || peak <= enough {
			return
		}
	}
}

// remedies lists what can be done at the job's peak, the best first.
func (d *draft) remedies(o Options) []remedy {
	d.meter.count(2*len(d.steps) + len(d.gaps))
	at, peak := d.peak()
	above := d.countAbove(min(d.goal, peak-1))
	var all []remedy
	for _, x := range d.gaps {
		slot, ok := d.covers(x, at)
		if !ok || x.away(slot) || x.kind == recompute {
			continue
		}
		d.meter.count(fitSteps)
		var r remedy
		size := uint64(d.bytes[x.storage])
		possible := d.maySwap(x) && (x.arrival() || !o.NoStall)
		if possible {
			r = d.swapAt(x, slot)
			r.gain = size * above.within(r.drop+1, r.in+1)
			if x.kind == swap {
				r.gain -= size * above.within(x.drop+1, x.in+1)
			}
		}
		if again, ok := d.recomputeAt(x); ok && !o.NoRecompute {
			again.gain = size * above.within(x.from+1, x.to)
			if !possible || compare(again, d, r, d) < 0 {
				r, possible = again, true
			}
		}
		if possible {
			all = append(all, r)
		}
	}
	d.meter.count(2 * len(all) * bits.Len(uint(len(all))))
	slices.SortFunc(all, func(a, b remedy) int { return compare(a, d, b, d) })
	return all
}

// counts holds, per unrolled slot, how many of the slots before it have some property.
type counts []uint64

// countAbove counts the slots whose footprint is above a limit.
func (d *draft) countAbove(limit graph.Bytes) counts {
	slots := d.curve.Slots()
	n := len(slots)
	c := make(counts, 2*n+1)
	for slot := range 2 * n {
		c[slot+1] = c[slot]
		if slots[slot%n] > limit {
			c[slot+1]++
		}
	}
	return c
}

// within counts in [from, to).
func (c counts) within(from, to int) uint64 { return c[max(from, to)] - c[from] }

// swapAt is the swap of a gap that frees one slot at least. The copy out has the time before the slot, the copy in that
// after it, as far as their lanes are free. What they lack stalls the job, at most for as long as they take: a backlog
// on a lane is paid once. A gap that is swapped already is widened.
func (d *draft) swapAt(x *gap, slot int) remedy {
	bytes := d.g.Storages[x.storage].Bytes
	out, fetch := d.out.Time(bytes), d.in.Time(bytes)
	if d.clean(x) {
		out = 0
	}
	r := remedy{gap: x, kind: swap}
	if x.kind == swap {
		r.drop, r.in = min(slot-1, x.drop), max(slot, x.in)
		r.cost = x.cost + min(out, lack(d.end(x.from)+out, d.start(slot))) + min(fetch, lack(d.end(slot), d.start(x.to)-fetch))
		return r
	}
	begin, _ := d.outs.earliest(d.end(x.from), never, out)
	r.drop = min(slot-1, d.firstEndedAt(begin+out, x.from))
	last, ok := d.ins.latest(0, d.start(x.to), fetch)
	if !ok {
		last = -fetch
	}
	r.in = max(slot, d.lastEndedBy(last, x.to-1))
	r.cost = min(out, lack(begin+out, d.start(slot))) + min(fetch, lack(d.end(slot), last)) + 2*overhead
	r.out, r.fetch = stretch{begin, begin + out}, stretch{last, last + fetch}
	return r
}

// lack is how much later than wanted something happens.
func lack(happens, wanted time.Duration) time.Duration { return max(0, happens-wanted) }

// mul returns the product of bytes and a time in two words.
func mul(b graph.Bytes, t time.Duration) (high, low uint64) { return bits.Mul64(uint64(b), uint64(t)) }
