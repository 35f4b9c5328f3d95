package scheduler

import (
	"sort"
	"time"

	"tensile/cost"
	"tensile/graph"
)

// swapper books swaps of one job on its share of the link.
type swapper struct {
	*draft
	out, in   cost.Link
	outs, ins timeline
	goal      graph.Bytes // the peak that force aims at
	exhausted bool        // no gap at the peak can be swapped without a stall
	most      int         // storages that may be swapped; negative: all
}

func newSwapper(d *draft, out, in cost.Link) *swapper {
	return &swapper{draft: d, out: out, in: in, outs: timeline{period: d.total}, ins: timeline{period: d.total}, most: d.mostSwaps()}
}

// worthwhile is the share of the peak below which a storage is not swapped for its own sake.
const worthwhile = 1024

// candidate returns the largest gap at the peak that is kept, matters and was not tried yet.
func (w *swapper) candidate() *gap {
	at, peak := w.peak()
	var best *gap
	for _, x := range w.gaps {
		if _, ok := w.covers(x, at); ok && x.kind == keep && !x.stuck && w.size(x.storage) >= peak/worthwhile && (best == nil || w.size(x.storage) > w.size(best.storage)) && w.maySwap(x) {
			best = x
		}
	}
	return best
}

// try swaps a gap if both copies fit into free link time, the copy out as early and the copy in as late as possible,
// and the storage is then away at the peak (Swap Scheduling, TENSILE Algorithm 2).
func (w *swapper) try(x *gap) bool {
	at, _ := w.peak()
	at, _ = w.covers(x, at)
	bytes := w.job.Graph.Storages[x.storage].Bytes
	drop, out, outLength := x.from, w.end(x.from), time.Duration(0)
	if !w.clean(x) {
		outLength = w.out.Time(bytes)
		var ok bool
		if out, ok = w.outs.earliest(out, w.start(at), outLength); !ok {
			return false
		}
		drop = w.firstEndedAt(out+outLength, x.from)
	}
	inLength := w.in.Time(bytes)
	fetch, ok := w.ins.latest(max(out+outLength, w.end(at)), w.start(x.to), inLength)
	if !ok {
		return false
	}
	in := w.lastEndedBy(fetch, x.to-1)
	if !(drop < at && at <= in) {
		return false
	}
	w.outs.book(out, outLength)
	w.ins.book(fetch, inLength)
	w.set(x, swap, drop, in)
	return true
}

// firstEndedAt returns the first slot, from a given one on, that ends at t or later.
func (d *draft) firstEndedAt(t time.Duration, from int) int {
	return from + sort.Search(2*len(d.steps)-from, func(i int) bool { return d.end(from+i) >= t })
}

// lastEndedBy returns the last slot, up to a given one, that has ended at t, or -1.
func (d *draft) lastEndedBy(t time.Duration, to int) int {
	return sort.Search(to+1, func(slot int) bool { return d.end(slot) > t }) - 1
}

// swapFreely swaps at the peaks, the storage of all jobs that is largest for its job's weight first, until the peaks' sum
// is at most the target or no swap is left that costs no time.
func swapFreely(jobs []*swapper, target graph.Bytes) {
	for sumOfPeaks(jobs) > target {
		var job *swapper
		var best *gap
		for _, w := range jobs {
			if w.exhausted {
				continue
			}
			x := w.candidate()
			if x == nil {
				w.exhausted = true
			} else if best == nil || w.size(x.storage)*graph.Bytes(job.job.weight()) > job.size(best.storage)*graph.Bytes(w.job.weight()) {
				job, best = w, x
			}
		}
		if best == nil {
			return
		}
		best.stuck = !job.try(best)
	}
}

func sumOfPeaks(jobs []*swapper) graph.Bytes {
	var sum graph.Bytes
	for _, w := range jobs {
		_, peak := w.peak()
		sum += peak
	}
	return sum
}
