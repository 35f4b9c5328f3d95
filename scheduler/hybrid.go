package scheduler

import (
	"cmp"
	"slices"

	"tensile/graph"
)

// hybrid plans recomputations and swaps together. What is recomputed is a prefix of one sequence, ordered by the time that
// each byte takes: so the prefix is all that has to be searched for. For each that is tried the steps are written with the
// recomputations in them, and swaps fill what is free of the link then.
type hybrid struct {
	r        *Request
	base     [][]step // per job
	chains   []*chains
	sequence []recomputable
}

func (r *Request) hybrid(order func(*graph.Graph) []graph.OpID) *hybrid {
	h := &hybrid{r: r}
	for i := range r.Jobs {
		h.base = append(h.base, firstSteps(order(r.Jobs[i].Graph)))
	}
	return h
}

// prepare finds what can be recomputed.
func (h *hybrid) prepare() {
	if h.chains != nil {
		return
	}
	least := MaxWeight
	for i := range h.r.Jobs {
		least = min(least, h.r.Jobs[i].weight())
	}
	for i := range h.r.Jobs {
		c := newChains(h.r.draft(i, h.base[i]), h.r.Options.NoChains)
		h.chains = append(h.chains, c)
		if !h.r.Options.NoRecompute && !h.r.Options.NoHybrid {
			h.sequence = append(h.sequence, c.sequence(i, h.r.Jobs[i].weight(), least)...)
		}
	}
	slices.SortStableFunc(h.sequence, func(a, b recomputable) int {
		return cmp.Or(cmp.Compare(a.class, b.class), cmp.Compare(b.bytes, a.bytes), cmp.Compare(a.job, b.job), cmp.Compare(a.storage, b.storage))
	})
}

// plan recomputes the first k of the sequence and swaps what costs no time, until the sum of the peaks is at the target.
func (h *hybrid) plan(k int, target graph.Bytes) []*draft {
	touched := h.choose(k)
	jobs := make([]*draft, len(h.base))
	for i, steps := range h.base {
		if touched[i] {
			steps, _ = h.chains[i].insert()
		}
		jobs[i] = h.r.draft(i, steps)
	}
	if !h.r.Options.NoSwap {
		swapFreely(jobs, target)
	}
	return jobs
}

// choose marks the first k of the sequence as recomputed, and returns which jobs have one.
func (h *hybrid) choose(k int) []bool {
	for _, c := range h.chains {
		clear(c.chosen)
	}
	jobs := make([]bool, len(h.base))
	for _, s := range h.sequence[:k] {
		h.chains[s.job].chosen[s.storage] = true
		jobs[s.job] = true
	}
	return jobs
}

// reach returns drafts whose peaks add up to at most the target, with as short a prefix as possible, or else the lowest
// that were tried. It takes a number of trials logarithmic in the sequence.
func (h *hybrid) reach(target graph.Bytes) []*draft {
	best := h.plan(0, target)
	lowest := sumOfPeaks(best)
	if lowest <= target {
		return best
	}
	h.prepare()
	low, high := 0, len(h.sequence) // low is not enough; high is, or was not tried
	for found := false; low < high; {
		k := (low + high + 1) / 2
		if k == high && found {
			break
		}
		jobs := h.plan(k, target)
		peak := sumOfPeaks(jobs)
		if peak <= target {
			high, found = k, true
		} else {
			low = k
		}
		if peak <= target || lowest > target && peak < lowest {
			best, lowest = jobs, peak
		}
	}
	return best
}
