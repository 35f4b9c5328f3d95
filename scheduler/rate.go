package scheduler

import (
	"fmt"
	"slices"

	"tensile/graph"
)

// mostSwaps returns how many of the job's storages may be swapped by its rate, rounded down; negative: all.
func (d *draft) mostSwaps() int {
	if d.job.MaxSwapRate == 0 {
		return -1
	}
	swappable := 0
	for _, gaps := range d.of {
		if slices.ContainsFunc(gaps, func(x *gap) bool { return !x.arrival() }) {
			swappable++
		}
	}
	return int(d.job.MaxSwapRate * float64(swappable))
}

// arrival reports whether the gap is the arrival of an input, which has to be copied in whatever is decided.
func (x *gap) arrival() bool { return x.from < 0 }

// swapped reports whether a gap of the storage is swapped.
func (d *draft) swapped(s graph.StorageID) bool {
	return slices.ContainsFunc(d.of[s], func(x *gap) bool { return x.kind == swap && !x.arrival() })
}

// maySwap reports whether the max swap rate leaves room for the swap of a gap. A storage that is swapped in another gap
// counts once.
func (w *swapper) maySwap(x *gap) bool {
	return w.most < 0 || x.arrival() || w.swapped(x.storage) || w.swaps() < w.most
}

// swaps counts the storages that are swapped.
func (d *draft) swaps() int {
	n := 0
	for s := range d.of {
		if d.swapped(graph.StorageID(s)) {
			n++
		}
	}
	return n
}

// limits names the jobs that may swap no more, as a part of an error's line.
func limits(jobs []*swapper) string {
	var words []string
	for _, w := range jobs {
		if w.most >= 0 && w.swaps() >= w.most {
			words = append(words, fmt.Sprintf("%v of job %s", w.job.MaxSwapRate, w.job.Name))
		}
	}
	if len(words) == 0 {
		return ""
	}
	return "; raise the max swap rate (" + abridged(words) + ")"
}
