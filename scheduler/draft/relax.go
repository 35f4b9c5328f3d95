package draft

import (
	"cmp"
	"slices"
	"time"

	"tensile/graph"
)

// relax gives swaps more time where memory is free anyway, so that a wrong prediction need not stall: storages are
// evicted later and prefetched earlier, as long as no slot exceeds the limit. It changes neither which gaps are swapped
// nor, below the limit, the peak. Where steps take no time, nor do copies that fit in between: none has an order to
// keep.
func (d *Draft) relax(limit graph.Bytes) {
	d.meter.count(len(d.gaps))
	var swaps []*Gap
	for _, x := range d.gaps {
		if x.kind == swap {
			swaps = append(swaps, x)
		}
	}
	if d.exact && d.period > 0 {
		d.loosen(swaps, limit)
		return
	}
	d.dropLater(swaps, limit)
	d.fetchEarlier(swaps, limit)
}

// loosen keeps the order of each lane. A copy out gets as much time again as it takes; a copy in begins up to as much
// earlier as it takes, but never before the copy before it has ended: so no copy is later than it was.
func (d *Draft) loosen(swaps []*Gap, limit graph.Bytes) {
	for _, x := range swaps {
		if !x.copied {
			continue
		}
		until := x.send + 2*d.out.Time(d.g.Storages[x.storage].Bytes)
		for d.end(x.drop) < until && x.drop+1 < x.in && d.room(x, x.drop+1, limit) && d.mayRelax(x, x.drop+1, x.in) {
			d.set(x, swap, x.drop+1, x.in)
		}
	}
	slices.SortFunc(swaps, func(a, b *Gap) int {
		return cmp.Or(cmp.Compare(a.fetch%d.period, b.fetch%d.period), cmp.Compare(a.storage, b.storage))
	})
	var free time.Duration // the time since when the lane has nothing to do, within one iteration
	for _, x := range swaps {
		if x.dies {
			continue
		}
		took := d.in.Time(d.g.Storages[x.storage].Bytes)
		shift := x.fetch - x.fetch%d.period
		begin := max(free, x.fetch-shift-took) + shift
		for x.in > max(x.drop+1, -1) && d.start(x.in) >= begin && d.room(x, x.in, limit) &&
			d.mayRelax(x, x.drop, x.in-1) {
			d.set(x, swap, x.drop, x.in-1)
		}
		if x.in >= 0 {
			x.fetch = min(x.fetch, max(begin, d.end(x.in)))
		}
		free = max(free, x.fetch-shift+took)
	}
}

// dropLater goes through the copies out in the order of their lane.
func (d *Draft) dropLater(swaps []*Gap, limit graph.Bytes) {
	slices.SortFunc(swaps, func(a, b *Gap) int {
		return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.storage,
			b.storage))
	})
	var free time.Duration
	for _, x := range swaps {
		if x.Arrival() || d.clean(x) {
			continue
		}
		free = max(free, d.end(x.from)) + d.out.Time(d.g.Storages[x.storage].Bytes)
		for d.end(x.drop) < free && x.drop+1 < x.in && d.room(x, x.drop+1, limit) && d.mayRelax(x, x.drop+1, x.in) {
			d.set(x, swap, x.drop+1, x.in)
		}
	}
}

// fetchEarlier goes through the copies in from the last to the first.
func (d *Draft) fetchEarlier(swaps []*Gap, limit graph.Bytes) {
	n := len(d.steps)
	slices.SortFunc(swaps, func(a, b *Gap) int {
		return cmp.Or(cmp.Compare(b.to%n, a.to%n), cmp.Compare(b.storage, a.storage))
	})
	free := d.period
	for _, x := range swaps {
		if x.dies {
			continue
		}
		free = min(free, d.start(x.to%n)) - d.in.Time(d.g.Storages[x.storage].Bytes)
		begin := free
		if x.to >= n {
			begin += d.period
		}
		for x.in > max(x.drop+1, -1) && d.end(x.in) > begin && d.room(x, x.in, limit) &&
			d.mayRelax(x, x.drop, x.in-1) {
			d.set(x, swap, x.drop, x.in-1)
		}
	}
}

// room reports whether a gap's storage may stay in a slot.
func (d *Draft) room(x *Gap, slot int, limit graph.Bytes) bool {
	d.meter.count(4)
	return d.curve.At(slot%d.curve.Len())+d.bytes[x.storage] <= limit
}
