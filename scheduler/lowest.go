package scheduler

import (
	"time"
)

// allowance is the part of a job's time that recomputations may take where no budget asks for them: 1 %.
const allowance = 100

// lowest plans as low as swaps go that cost no time, and recomputations that take a hundredth of each job's.
func (r *Request) lowest() (Result, error) {
	h := r.hybrid(earlyUpdates)
	if r.Options.KeepOrder {
		h = r.hybrid(graphOrder)
	}
	h.prepare()
	var best []*draft
	for share := 4; share >= 0; share-- {
		jobs := h.plan(h.within(share), 0)
		if best == nil || sumOfPeaks(jobs) < sumOfPeaks(best) {
			best = jobs
		}
	}
	return r.finish(best, 0)
}

// within returns how much of the sequence takes no job more than so many quarters of its allowance.
func (h *hybrid) within(quarters int) int {
	low, high := 0, len(h.sequence)
	for low < high {
		k := (low + high + 1) / 2
		if h.takes(k, quarters) {
			low = k
		} else {
			high = k - 1
		}
	}
	return low
}

func (h *hybrid) takes(k, quarters int) bool {
	for _, c := range h.chains {
		clear(c.chosen)
	}
	for _, s := range h.sequence[:k] {
		h.chains[s.job].chosen[s.storage] = true
	}
	for _, c := range h.chains {
		if _, took := c.insert(); took > c.period/4*time.Duration(quarters)/allowance {
			return false
		}
	}
	return true
}
