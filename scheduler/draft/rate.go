package draft

import (
	"fmt"
	"slices"

	"tensile/graph"
	"tensile/scheduler"
)

// swapLimit counts the storages that are swapped, and says how many may be.
type swapLimit struct {
	limit   int     // storages that may be swapped; negative: all
	swapped []int32 // per storage: its gaps that are swapped, arrivals left out
	swaps   int     // storages with such a gap
}

// Swaps returns how many storages are swapped, arrivals left out.
func (l *swapLimit) Swaps() int { return l.swaps }

// maxSwaps returns how many of the job's storages may be swapped by its rate, rounded down; negative: all.
func (d *Draft) maxSwaps() int {
	if d.job.SwapLimit() == 1 {
		return -1
	}
	return int(d.job.MaxSwapRate * float64(d.swappable()))
}

// swappable counts the storages that are left alone for a step or more between two accesses, recomputations left out.
func (d *Draft) swappable() int {
	first := slices.Repeat([]int{-1}, len(d.bytes))
	last := slices.Clone(first)
	idle := make([]bool, len(d.bytes))
	slot := 0
	for _, step := range d.steps {
		if step.Want >= 0 {
			continue
		}
		for _, s := range d.touches.list(int(step.Op)) {
			if first[s] < 0 {
				first[s] = slot
			} else if slot > last[s]+1 {
				idle[s] = true
			}
			last[s] = slot
		}
		slot++
	}
	n := 0
	for s := range idle {
		if idle[s] || first[s] >= 0 && d.g.Storages[s].Role.Persistent() && first[s]+slot > last[s]+1 {
			n++
		}
	}
	return n
}

// MayLeave reports whether a storage is large enough to leave the device before its time.
func (d *Draft) MayLeave(s graph.StorageID) bool { return d.g.Storages[s].Bytes >= d.job.Least }

// MaySwap reports whether the storage of a gap may leave, and the max swap rate and the host leave room for its swap. A
// storage that is swapped in another gap counts once.
func (d *Draft) MaySwap(x *Gap) bool {
	return x.Arrival() || d.MayLeave(x.storage) && d.mayCopy(x)
}

func (d *Draft) mayCopy(x *Gap) bool {
	return d.swapped[x.storage] > 0 || d.underRate() && d.host.allows(d.copies*d.spills[x.storage])
}

// underRate reports whether the max swap rate leaves room for another storage.
func (d *Draft) underRate() bool { return d.limit < 0 || d.swaps < d.limit }

// AtSwapLimit names the jobs that may swap no more, as a part of an error's line; "" if there are none.
func AtSwapLimit(jobs []*Draft) string {
	var words []string
	for _, d := range jobs {
		if d.limit >= 0 && d.swaps >= d.limit {
			words = append(words, fmt.Sprintf("%v of job %s", d.job.MaxSwapRate, d.job.Name))
		}
	}
	if len(words) == 0 {
		return ""
	}
	return "; raise the max swap rate (" + scheduler.Abridge(words) + ")"
}
