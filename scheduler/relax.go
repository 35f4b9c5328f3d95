package scheduler

import (
	"cmp"
	"slices"
	"time"

	"tensile/graph"
)

// relax gives swaps more time where memory is free anyway: storages are dropped later and fetched earlier, up to the
// time that their lane needs, as long as no slot exceeds the cap. It changes neither which gaps are swapped nor, below
// the cap, the peak.
func (w *swapper) relax(d *draft, limit graph.Bytes) {
	var swaps []*gap
	for _, x := range d.gaps {
		if x.kind == swap {
			swaps = append(swaps, x)
		}
	}
	w.dropLater(d, swaps, limit)
	w.fetchEarlier(d, swaps, limit)
}

// dropLater goes through the copies out in the order of their lane.
func (w *swapper) dropLater(d *draft, swaps []*gap, limit graph.Bytes) {
	slices.SortFunc(swaps, func(a, b *gap) int { return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.storage, b.storage)) })
	var free time.Duration
	for _, x := range swaps {
		if x.from < 0 || d.clean(x) {
			continue
		}
		free = max(free, d.end(x.from)) + w.out.Time(d.job.Graph.Storages[x.storage].Bytes)
		for d.end(x.drop) < free && x.drop+1 < x.in && d.room(x, x.drop+1, limit) {
			d.set(x, swap, x.drop+1, x.in)
		}
	}
}

// fetchEarlier goes through the copies in from the last to the first.
func (w *swapper) fetchEarlier(d *draft, swaps []*gap, limit graph.Bytes) {
	n := len(d.steps)
	slices.SortFunc(swaps, func(a, b *gap) int {
		return cmp.Or(cmp.Compare(b.to%n, a.to%n), cmp.Compare(b.storage, a.storage))
	})
	free := d.total
	for _, x := range swaps {
		free = min(free, d.start(x.to%n)) - w.in.Time(d.job.Graph.Storages[x.storage].Bytes)
		begin := free
		if x.to >= n {
			begin += d.total
		}
		for x.in > max(x.drop+1, -1) && d.end(x.in) > begin && d.room(x, x.in, limit) {
			d.set(x, swap, x.drop, x.in-1)
		}
	}
}

// room reports whether a gap's storage may stay in a slot.
func (d *draft) room(x *gap, slot int, limit graph.Bytes) bool {
	return d.slots[slot%len(d.slots)]+d.size(x.storage) <= limit
}
