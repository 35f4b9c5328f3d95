package tensile

import (
	"cmp"
	"math/bits"
	"slices"
	"time"

	"tensile/graph"
	"tensile/scheduler"
	"tensile/scheduler/draft"
)

// remedy is one way to lower the footprint of a job's peak slot, and what that brings.
type remedy struct {
	draft.Remedy
	gain uint64 // bytes times slots that are above the goal and lose them
}

// compare orders remedies of two jobs by cost per gain, then by size, larger first, then by the slot of the access
// behind the gap: what is recomputed for an early access may serve as input of what a later one needs. The cost counts
// by the job's weight, and the size against it.
func compare(a remedy, d *draft.Draft, b remedy, e *draft.Draft) int {
	v, w := d.Job().Worth(), e.Job().Worth()
	high, low := bits.Mul64(uint64(a.Cost/time.Microsecond)*uint64(v), b.gain)
	otherHigh, otherLow := bits.Mul64(uint64(b.Cost/time.Microsecond)*uint64(w), a.gain)
	return cmp.Or(cmp.Compare(high, otherHigh), cmp.Compare(low, otherLow),
		cmp.Compare(e.Bytes(b.Gap.Storage())*graph.Bytes(v), d.Bytes(a.Gap.Storage())*graph.Bytes(w)),
		cmp.Compare(a.Gap.To(), b.Gap.To()), cmp.Compare(a.Gap.Storage(), b.Gap.Storage()))
}

// force lowers the sum of the peaks to the target by the remedies that cost least for what they gain. Each job's goal
// is its share of the target. It reports whether it succeeded; otherwise every peak is a working set, or its job may
// swap no more storages.
func force(jobs []*draft.Draft, target graph.Bytes, o Options) bool {
	found, goals := make([][]remedy, len(jobs)), make([]graph.Bytes, len(jobs))
	sum := draft.SumOfPeaks(jobs)
	for i, d := range jobs {
		_, peak := d.Peak()
		goals[i] = share(peak, target, sum)
		found[i] = remedies(d, goals[i], o)
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
		d := jobs[best]
		d.Count(4 * len(jobs))
		_, before := d.Peak()
		applyAll(d, found[best], target-(sum-before))
		_, after := d.Peak()
		sum += after - before
		found[best] = remedies(d, goals[best], o)
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
// step, after which the others must be found again.
func applyAll(d *draft.Draft, remedies []remedy, enough graph.Bytes) {
	at, _ := d.Peak()
	for _, r := range remedies {
		d.Count(draft.FitSteps)
		if r.Kind == scheduler.Swap && !d.MaySwap(r.Gap) {
			continue // one before it was the last that may
		}
		d.Apply(r.Remedy)
		if now, peak := d.Peak(); r.Kind == scheduler.Recompute || now != at || peak <= enough {
			return
		}
	}
}

// remedies lists what can be done at the job's peak, the best first.
func remedies(d *draft.Draft, goal graph.Bytes, o Options) []remedy {
	d.Count(2*len(d.Steps()) + len(d.Gaps()))
	at, peak := d.Peak()
	above := countAbove(d, min(goal, peak-1))
	var all []remedy
	for _, x := range d.Gaps() {
		slot, ok := d.Covers(x, at)
		if !ok || x.Away(slot) || x.Kind() == scheduler.Recompute {
			continue
		}
		d.Count(draft.FitSteps)
		if r, ok := cheapest(d, x, slot, above, o); ok {
			all = append(all, r)
		}
	}
	d.Count(2 * len(all) * bits.Len(uint(len(all))))
	slices.SortFunc(all, func(a, b remedy) int { return compare(a, d, b, d) })
	return all
}

// cheapest returns the swap or the recomputation of a gap, whichever costs less for its gain, if one of them is
// possible.
func cheapest(d *draft.Draft, x *draft.Gap, slot int, above counts, o Options) (r remedy, possible bool) {
	size := uint64(d.Bytes(x.Storage()))
	if possible = d.MaySwap(x) && (x.Arrival() || !o.NoStall); possible {
		r.Remedy = d.SwapAt(x, slot)
		r.gain = size * above.within(r.Drop+1, r.In+1)
		if x.Kind() == scheduler.Swap {
			r.gain -= size * above.within(x.Drop()+1, x.In()+1)
		}
	}
	if again, ok := d.RecomputeAt(x); ok && !o.NoRecompute {
		made := remedy{again, size * above.within(x.From()+1, x.To())}
		if !possible || compare(made, d, r, d) < 0 {
			return made, true
		}
	}
	return r, possible
}

// counts holds, per unrolled slot, how many of the slots before it have some property.
type counts []uint64

// countAbove counts the slots whose footprint is above a limit.
func countAbove(d *draft.Draft, limit graph.Bytes) counts {
	slots := d.Footprint()
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
