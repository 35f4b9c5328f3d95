package scheduler

import "fmt"

// mostSwaps returns how many of the job's storages may be swapped by its rate, rounded down; negative: all.
func (d *draft) mostSwaps() int {
	if d.job.MaxSwapRate == 0 {
		return -1
	}
	swappable := 0
	for _, x := range d.head {
		if x != nil && (!x.arrival() || x.next != nil) {
			swappable++
		}
	}
	return int(d.job.MaxSwapRate * float64(swappable))
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
