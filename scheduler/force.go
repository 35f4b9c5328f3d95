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
		cmp.Compare(e.size(b.gap.storage)*graph.Bytes(v), d.size(a.gap.storage)*graph.Bytes(w)),
		cmp.Compare(a.gap.to, b.gap.to), cmp.Compare(a.gap.storage, b.gap.storage))
}

// force lowers the sum of the peaks to the target by the remedies that cost least for what they gain. Each job's goal is
// its share of the target. It reports whether it succeeded; otherwise every peak is a working set, or its job may swap
// no more storages.
func force(jobs []*swapper, target graph.Bytes, o Options) bool {
	found := make([][]remedy, len(jobs))
	sum := sumOfPeaks(jobs)
	for i, w := range jobs {
		_, peak := w.peak()
		w.goal = share(peak, target, sum)
		found[i] = w.remedies(o)
	}
	for sumOfPeaks(jobs) > target {
		best := -1
		for i, all := range found {
			if len(all) > 0 && (best < 0 || compare(all[0], jobs[i].draft, found[best][0], jobs[best].draft) < 0) {
				best = i
			}
		}
		if best < 0 {
			return false
		}
		jobs[best].applyAll(found[best], func() bool { return sumOfPeaks(jobs) <= target })
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

// applyAll carries out remedies, cheapest first, until enough is freed or the peak has moved. A recomputation inserts a
// step, after which the others must be found anew.
func (w *swapper) applyAll(remedies []remedy, enough func() bool) {
	at, _ := w.peak()
	for _, r := range remedies {
		if r.kind == recompute {
			w.recompute(r)
			return
		}
		if !w.maySwap(r.gap) {
			continue // one before it was the last that may
		}
		w.outs.book(r.out.from, r.out.to-r.out.from)
		w.ins.book(r.fetch.from, r.fetch.to-r.fetch.from)
		w.set(r.gap, swap, r.drop, r.in)
		r.gap.cost = r.cost
		if now, _ := w.peak(); now != at || enough() {
			return
		}
	}
}

// remedies lists what can be done at the job's peak, the best first.
func (w *swapper) remedies(o Options) []remedy {
	at, peak := w.peak()
	above := w.countAbove(min(w.goal, peak-1))
	var all []remedy
	for _, x := range w.gaps {
		slot, ok := w.covers(x, at)
		if !ok || x.away(slot) || x.kind == recompute {
			continue
		}
		var r remedy
		possible := w.maySwap(x)
		if possible {
			r = w.swapAt(x, slot)
			r.gain = uint64(w.size(x.storage)) * above.within(r.drop+1, r.in+1)
			if x.kind == swap {
				r.gain -= uint64(w.size(x.storage)) * above.within(x.drop+1, x.in+1)
			}
		}
		if again, ok := w.recomputeAt(x); ok && !o.NoRecompute {
			again.gain = uint64(w.size(x.storage)) * above.within(x.from+1, x.to)
			if !possible || compare(again, w.draft, r, w.draft) < 0 {
				r, possible = again, true
			}
		}
		if possible {
			all = append(all, r)
		}
	}
	slices.SortFunc(all, func(a, b remedy) int { return compare(a, w.draft, b, w.draft) })
	return all
}

// counts holds, per unrolled slot, how many of the slots before it have some property.
type counts []uint64

// countAbove counts the slots whose footprint is above a limit.
func (d *draft) countAbove(limit graph.Bytes) counts {
	n := len(d.slots)
	c := make(counts, 2*n+1)
	for slot := range 2 * n {
		c[slot+1] = c[slot]
		if d.slots[slot%n] > limit {
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
func (w *swapper) swapAt(x *gap, slot int) remedy {
	bytes := w.job.Graph.Storages[x.storage].Bytes
	out, fetch := w.out.Time(bytes), w.in.Time(bytes)
	if w.clean(x) {
		out = 0
	}
	r := remedy{gap: x, kind: swap}
	if x.kind == swap {
		r.drop, r.in = min(slot-1, x.drop), max(slot, x.in)
		r.cost = x.cost + min(out, w.lack(w.end(x.from)+out, w.start(slot))) + min(fetch, w.lack(w.end(slot), w.start(x.to)-fetch))
		return r
	}
	begin, _ := w.outs.earliest(w.end(x.from), 2*w.total, out)
	r.drop = min(slot-1, w.firstEndedAt(begin+out, x.from))
	last, _ := w.ins.latest(0, w.start(x.to), fetch)
	r.in = max(slot, w.lastEndedBy(last, x.to-1))
	late, early := w.lack(begin+out, w.start(slot)), w.lack(w.end(slot), last)
	r.cost = min(out, late) + min(fetch, early) + 2*overhead
	r.out, r.fetch = stretch{begin, begin + out}, stretch{last, last + fetch}
	return r
}

// lack is how much later than wanted something happens.
func (w *swapper) lack(happens, wanted time.Duration) time.Duration { return max(0, happens-wanted) }
