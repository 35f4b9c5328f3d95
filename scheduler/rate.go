package scheduler

import (
	"fmt"
	"slices"
)

// mostSwaps returns how many of the job's storages may be swapped by its rate, rounded down; negative: all.
func (d *draft) mostSwaps() int {
	if d.job.MaxSwapRate == 0 {
		return -1
	}
	return int(d.job.MaxSwapRate * float64(d.swappable()))
}

// swappable counts the storages that are left alone for a step or more between two accesses, recomputations left out.
func (d *draft) swappable() int {
	first := slices.Repeat([]int{-1}, len(d.bytes))
	last := slices.Clone(first)
	idle := make([]bool, len(d.bytes))
	slot := 0
	for _, step := range d.steps {
		if step.want >= 0 {
			continue
		}
		for _, s := range d.touches.of(int(step.op)) {
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

// maySwap reports whether the max swap rate leaves room for the swap of a gap. A storage that is swapped in another gap
// counts once.
func (d *draft) maySwap(x *gap) bool {
	return d.most < 0 || x.arrival() || d.swapped[x.storage] > 0 || d.swaps < d.most
}

// limits names the jobs that may swap no more, as a part of an error's line.
func limits(jobs []*draft) string {
	var words []string
	for _, d := range jobs {
		if d.most >= 0 && d.swaps >= d.most {
			words = append(words, fmt.Sprintf("%v of job %s", d.job.MaxSwapRate, d.job.Name))
		}
	}
	if len(words) == 0 {
		return ""
	}
	return "; raise the max swap rate (" + abridged(words) + ")"
}
