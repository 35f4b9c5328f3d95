package scheduler

import (
	"cmp"
	"slices"

	"tensile/graph"
)

// tensilePaper is the method as TENSILE has it (section IV), on slots: its peaks are those that the proof finds. Swaps are
// planned first and as far as they go, whatever the budget; storages are recomputed only if that was not enough. Both
// directions share one channel, an op stays where the graph has it, nothing stalls and nothing is chained.
func tensilePaper(r Request) (Result, error) {
	o := &r.Options
	o.KeepOrder, o.OneChannel, o.LateOut, o.NoRelax, o.NoStall, o.NoHybrid, o.NoChains = true, true, true, true, true, true, true
	least, why := workingSets(r)
	if r.Budget > 0 && least > r.Budget {
		return Result{}, &OverBudgetError{least, r.Budget, "the largest steps need it: " + why}
	}
	r.stage(Planning)
	jobs := r.drafts(graphOrder)
	if !o.NoSwap && !r.search(func() { swapAll(jobs) }) {
		if r.Budget > 0 {
			return Result{}, &WorkLimitError{Work: r.work()}
		}
		jobs = r.drafts(graphOrder) // these were left in the middle of a change
	}
	target := r.Budget
	for {
		enough := true
		if r.Budget > 0 && !r.search(func() { enough = recomputeUntil(jobs, target, o.NoRecompute) }) {
			return Result{}, &WorkLimitError{Work: r.work()}
		}
		result, err := r.finish(jobs, 0)
		if err != nil || r.Budget == 0 || result.Arena <= r.Budget {
			return result, err
		}
		if !enough || target <= least {
			return Result{}, &OverBudgetError{result.Arena, r.Budget, "what the paper's method leaves packs into that" + limits(jobs) + "; policy tensile goes lower"}
		}
		target = max(least, target-(result.Arena-r.Budget))
		r.stage(Planning)
	}
}

// The stopping rule of Algorithm 3: after some iterations, a mean reduction of the peaks in the last few of them below
// 1/2000 (0.05 %) ends the swapping.
const (
	patience = 100
	recent   = 3
	progress = 2000
)

// swapAll is the loop of Algorithm 3 while swapping succeeds: per iteration the peaks are analysed and the largest storage
// at a peak, of all jobs, that can be swapped is.
func swapAll(jobs []*draft) {
	pickers := make([]*picker, len(jobs))
	for i, d := range jobs {
		d.small = 0
		pickers[i] = newPicker(d)
	}
	peaks := []graph.Bytes{sumOfPeaks(jobs)}
	for iteration := 0; ; iteration++ {
		if n := len(peaks) - 1; iteration > patience && n >= recent && (peaks[n-recent]-peaks[n])*progress < recent*peaks[n-recent] {
			return
		}
		if !swapLargest(jobs, pickers) {
			return
		}
		peaks = append(peaks, sumOfPeaks(jobs))
	}
}

// swapLargest tries the storages at the peaks, largest first over all jobs, until one is swapped (Algorithm 2). Then its
// other accesses are tried too.
func swapLargest(jobs []*draft, pickers []*picker) bool {
	for {
		jobs[0].meter.count(len(jobs))
		var best *gap
		var rank int32
		job := -1
		for i, p := range pickers {
			at, _ := p.peak()
			if x, place := p.largest(at); x != nil && (job < 0 || p.bytes[x.storage] > jobs[job].bytes[best.storage]) {
				best, rank, job = x, place, i
			}
		}
		if job < 0 {
			return false
		}
		d := jobs[job]
		pickers[job].index.remove(rank)
		if d.try(best) {
			d.swapOthers(best)
			return true
		}
	}
}

// swapOthers swaps the other gaps of a storage that has been swapped in one, where there is time: the earlier first.
func (d *draft) swapOthers(x *gap) {
	for y := d.head[x.storage]; y != nil; y = y.next {
		if y.kind != keep {
			continue
		}
		if p, ok := d.fit(y, y.from+1, true); ok && p.drop < p.in {
			d.carry(y, p)
		}
	}
}

// recomputeUntil recomputes storages at the peaks, those first whose memory saving per second (MSPS, Equation 4) is
// largest, until the sum of the peaks is at most the target (IV-D). It reports whether it got there.
func recomputeUntil(jobs []*draft, target graph.Bytes, never bool) bool {
	for sumOfPeaks(jobs) > target {
		var best remedy
		var of *draft
		for _, d := range jobs {
			at, _ := d.peak()
			d.meter.count(len(d.gaps))
			for _, x := range d.gaps {
				if _, ok := d.covers(x, at); !ok || never || x.kind != keep {
					continue
				}
				if m, ok := d.recomputeAt(x); ok && d.neverReleased(x) && (of == nil || msps(m, d, best, of) > 0) {
					best, of = m, d
				}
			}
		}
		if of == nil {
			return false
		}
		of.recompute(best)
	}
	return true
}

// msps compares two recomputations of two jobs by bytes saved per second.
func msps(a remedy, d *draft, b remedy, e *draft) int {
	high, low := mul(d.bytes[a.gap.storage], max(1, b.cost))
	otherHigh, otherLow := mul(e.bytes[b.gap.storage], max(1, a.cost))
	return cmp.Or(cmp.Compare(high, otherHigh), cmp.Compare(low, otherLow))
}

// neverReleased reports whether all inputs of the op that makes a storage stay on the device up to the end of the gap:
// others would have to be fetched or made again, which the paper avoids.
func (d *draft) neverReleased(x *gap) bool {
	made := int(d.writes.of(x.storage)[0])
	op := d.steps[made].op
	for _, s := range d.touches.of(int(op)) {
		d.meter.count(4)
		if slices.Contains(d.makes.of(int(op)), s) {
			continue
		}
		for y := d.head[s]; y != nil; y = y.next {
			if y.kind != keep && !y.arrival() && y.from < x.to && made < y.to {
				return false
			}
		}
	}
	return true
}
