package scheduler

import (
	"cmp"
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
}

// overhead is what every copy costs the job beside the link time: an event and a wait.
const overhead = time.Microsecond

// compare orders remedies of two jobs by cost per byte, then by size, larger first, then by the slot of the access
// behind the gap: what is recomputed for an early access may serve as input of what a later one needs.
func compare(a remedy, d *draft, b remedy, e *draft) int {
	left := int64(a.cost/time.Microsecond) * int64(e.size(b.gap.storage))
	right := int64(b.cost/time.Microsecond) * int64(d.size(a.gap.storage))
	return cmp.Or(cmp.Compare(left, right), cmp.Compare(e.size(b.gap.storage), d.size(a.gap.storage)),
		cmp.Compare(a.gap.to, b.gap.to), cmp.Compare(a.gap.storage, b.gap.storage))
}

// force lowers the sum of the peaks to the target by the cheapest remedies per byte. It reports whether it succeeded;
// otherwise every peak is a working set.
func force(jobs []*swapper, target graph.Bytes, o Options) bool {
	found := make([][]remedy, len(jobs))
	for i, w := range jobs {
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

// applyAll carries out remedies, cheapest first, until enough is freed or the peak has moved. A recomputation inserts a
// step, after which the others must be found anew.
func (w *swapper) applyAll(remedies []remedy, enough func() bool) {
	at, _ := w.peak()
	for _, r := range remedies {
		if r.kind == recompute {
			w.recompute(r)
			return
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

// remedies lists what can be done at the job's peak, cheapest per byte first.
func (w *swapper) remedies(o Options) []remedy {
	at, _ := w.peak()
	var all []remedy
	for _, x := range w.gaps {
		slot, ok := w.covers(x, at)
		if !ok || x.away(slot) || x.kind == recompute {
			continue
		}
		all = append(all, w.swapAt(x, slot))
		if r, ok := w.recomputeAt(x); ok && !o.NoRecompute && r.cost < all[len(all)-1].cost {
			all[len(all)-1] = r
		}
	}
	slices.SortFunc(all, func(a, b remedy) int { return compare(a, w.draft, b, w.draft) })
	return all
}

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
