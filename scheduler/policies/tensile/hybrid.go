package tensile

import (
	"cmp"
	"slices"
	"time"

	"tensile/graph"
	"tensile/scheduler"
	"tensile/scheduler/draft"
)

// hybrid plans recomputations and swaps together. It recomputes a prefix of one sequence, ordered by time per byte, so
// only the length of the prefix is searched for. Each trial writes the steps with these recomputations in them and then
// fills the free link time with swaps.
type hybrid struct {
	s        *draft.Session
	options  Options
	base     [][]draft.Step // per job
	chains   []*chains
	sequence []recomputable

	best   []*draft.Draft // of what was tried for the present target
	lowest graph.Bytes
	length int // of its prefix
	last   int // the prefix that was found for the target before; 0: none
}

func newHybrid(s *draft.Session, o Options, order func(*graph.Graph) []graph.OpID) *hybrid {
	h := &hybrid{s: s, options: o}
	for i := range s.Request.Jobs {
		g := s.Request.Jobs[i].Graph
		s.Count(4 * len(g.Ops))
		h.base = append(h.base, draft.FirstSteps(order(g)))
	}
	return h
}

// prepare finds what can be recomputed.
func (h *hybrid) prepare() {
	if h.chains != nil {
		return
	}
	minWeight := scheduler.MaxWeight
	for i := range h.s.Request.Jobs {
		minWeight = min(minWeight, h.s.Request.Jobs[i].Worth())
	}
	for i := range h.s.Request.Jobs {
		c := newChains(h.s.Draft(i, h.base[i], h.options.style()), h.options.NoChains)
		h.chains = append(h.chains, c)
		if !h.options.NoRecompute && !h.options.NoHybrid {
			h.sequence = append(h.sequence, c.sequence(i, h.s.Request.Jobs[i].Worth(), minWeight)...)
		}
	}
	slices.SortStableFunc(h.sequence, func(a, b recomputable) int {
		return cmp.Or(cmp.Compare(a.class, b.class), cmp.Compare(b.bytes, a.bytes), cmp.Compare(a.job, b.job),
			cmp.Compare(a.storage, b.storage))
	})
}

// plan recomputes the first k of the sequence and swaps what costs no time, until the sum of the peaks is at the
// target.
func (h *hybrid) plan(k int, target graph.Bytes) []*draft.Draft {
	touched := h.choose(k)
	jobs := make([]*draft.Draft, len(h.base))
	for i, steps := range h.base {
		if touched[i] {
			steps, _ = h.chains[i].insert()
		}
		jobs[i] = h.s.Draft(i, steps, h.options.style())
	}
	h.s.Together(jobs)
	if !h.options.NoSwap {
		draft.SwapFreely(jobs, target)
	}
	return jobs
}

// choose marks the first k of the sequence as recomputed, and returns which jobs have one.
func (h *hybrid) choose(k int) []bool {
	for _, c := range h.chains {
		clear(c.chosen)
	}
	jobs := make([]bool, len(h.base))
	h.s.Count(k + len(h.chains))
	for _, s := range h.sequence[:k] {
		h.chains[s.job].chosen[s.storage] = true
		jobs[s.job] = true
	}
	return jobs
}

// reach returns drafts whose peaks add up to at most the target, with as short a prefix as possible, or else the lowest
// that were tried. The search starts where the prefix recomputes as many bytes as must be saved, or where the search
// for the last target ended, and doubles its steps from there: the number of trials is logarithmic in the sequence.
func (h *hybrid) reach(target graph.Bytes) []*draft.Draft {
	h.best = nil
	if h.last == 0 {
		h.best, h.lowest = h.plan(0, target), 0
		if h.lowest = draft.SumOfPeaks(h.best); h.lowest <= target {
			return h.best
		}
		h.prepare()
		h.last = h.guess(h.lowest - target)
	}
	h.best, h.lowest = nil, 0
	low, high := -1, len(h.sequence) // low is not enough; high is, or nothing is
	k := min(h.last, high)
	for step := 1; low < k && k < high; step *= 2 { // away from the guess, until what is wanted lies between
		if h.try(k, target) {
			high = k
			k = max(low+1, k-step)
			if low >= 0 {
				break
			}
		} else {
			low = k
			if high < len(h.sequence) {
				break
			}
			k = min(high, k+step)
		}
	}
	if high == len(h.sequence) && !h.try(high, target) {
		h.force(target)
		return h.best
	}
	for low+1 < high {
		if k := (low + 1 + high) / 2; h.try(k, target) {
			high = k
		} else {
			low = k
		}
	}
	h.last = high
	return h.best
}

// force tries parts of the sequence and forces down what they leave above the target. It keeps the drafts that lose the
// least time, or the lowest ones if none reaches the target.
func (h *hybrid) force(target graph.Bytes) {
	const parts = 4
	var leastLost time.Duration
	h.best = nil
	for part := parts; part > 0; part-- {
		jobs := h.plan(len(h.sequence)*part/parts, target)
		enough := force(jobs, target, h.options)
		peak, lost := draft.SumOfPeaks(jobs), loss(jobs)
		if h.best == nil || enough && (h.lowest > target || lost < leastLost) || !enough && h.lowest > target &&
			peak < h.lowest {
			h.best, h.lowest, leastLost = jobs, peak, lost
		}
	}
	h.last = len(h.sequence)
}

// loss is what the decisions of jobs are expected to cost, weighed.
func loss(jobs []*draft.Draft) (sum time.Duration) {
	for _, d := range jobs {
		var lost time.Duration
		for _, s := range d.Steps() {
			if s.Want >= 0 {
				lost += d.Latency(s.Op)
			}
		}
		for _, x := range d.Gaps() {
			if x.Kind() == scheduler.Swap {
				lost += x.Cost()
			}
		}
		sum += lost * time.Duration(d.Job().Worth())
	}
	return sum
}

// guess returns a prefix that recomputes so many bytes, 1 at least.
func (h *hybrid) guess(bytes graph.Bytes) int {
	for k, s := range h.sequence {
		if bytes -= s.bytes; bytes <= 0 {
			return k + 1
		}
	}
	return max(1, len(h.sequence))
}

// try plans with a prefix and reports whether that reaches the target. It keeps what reaches it with the shortest
// prefix that was tried, or else what is lowest.
func (h *hybrid) try(k int, target graph.Bytes) bool {
	jobs := h.plan(k, target)
	peak := draft.SumOfPeaks(jobs)
	enough := peak <= target
	if h.best == nil || enough && (h.lowest > target || k < h.length) || !enough && h.lowest > target &&
		peak < h.lowest {
		h.best, h.lowest, h.length = jobs, peak, k
	}
	return enough
}
