package tensile

import (
	"cmp"
	"math"
	"slices"
	"time"

	"tensile/graph"
	"tensile/scheduler"
	"tensile/scheduler/draft"
)

// hybrid plans recomputations and swaps together. It recomputes a prefix of one sequence, ordered by time per byte, so
// only the length of the prefix is searched for. Each trial writes the steps with these recomputations in them and then
// fills the free link time with swaps. Where no prefix is enough, steps wait, so that the link has more time.
type hybrid struct {
	// s is the session.
	s *draft.Session
	// options are the policy's.
	options Options
	// groups are the equal jobs that are planned. The slices that follow have an entry for each.
	groups []int
	// base are the steps without recomputations.
	base [][]draft.Step
	// chains are what can be recomputed.
	chains []*chains
	// took is how long an iteration takes without a plan; nil: it was not asked for yet.
	took []time.Duration
	// sequence is what is recomputed, in order. A prefix of it is chosen.
	sequence []recomputable

	// best is the best trial for the present target; nil: there is none.
	best *trial
	// last is the prefix that was found for the target before; 0: none was.
	last int
	// floors are trials, without drafts, that came to a peak above their target, by the length of the prefix.
	floors map[int]trial

	// What one of the jobs that are not planned here needs above its base; 0: the jobs share no memory. See
	// draft.Beside.
	beside graph.Bytes

	// most is what drafts may lose, as trial.lost; those that lose more are not looked for.
	most int64

	// tight says that the sequence is made for the first target.
	tight bool
	// missed says that no prefix reached a target.
	missed bool
}

// unlimited is a most that excludes nothing.
const unlimited = math.MaxInt64

// trial is what came of planning with a prefix of the sequence.
type trial struct {
	jobs []*draft.Draft // nil: see hybrid.complete
	k    int            // length of the prefix
	peak graph.Bytes    // sum over jobs, or what they need together
	lost int64          // nanoseconds that the jobs' steps take more than without a plan, by weight
	// slots is the sum of the slot peaks alone, which recomputation lowers, unlike what is kept between iterations.
	slots graph.Bytes
}

// newHybrid plans some groups of equal jobs.
func newHybrid(s *draft.Session, o Options, order func(job int) []graph.OpID, groups []int) *hybrid {
	h := &hybrid{s: s, options: o, groups: groups, most: unlimited, floors: make(map[int]trial)}
	for _, group := range groups {
		first := s.Groups()[group][0]
		s.Count(4 * len(s.Request.Jobs[first].Graph.Ops))
		h.base = append(h.base, draft.FirstSteps(order(first)))
	}
	return h
}

// allGroups are those of the session.
func allGroups(s *draft.Session) []int {
	all := make([]int, len(s.Groups()))
	for i := range all {
		all[i] = i
	}
	return all
}

// prepare finds what can be recomputed, in an order for a target.
func (h *hybrid) prepare(target graph.Bytes) {
	if h.chains != nil {
		return
	}
	minWeight := h.minWeight()
	var sum graph.Bytes
	peaks := make([]graph.Bytes, len(h.base))
	for i := range h.base {
		c := newChains(h.s.Group(h.groups[i], h.base[i], h.options.style()), h.options.NoChains)
		h.chains = append(h.chains, c)
		_, peaks[i] = c.Peak()
		sum += peaks[i] * c.Copies()
	}
	for i, c := range h.chains {
		goal := roomy
		if target < sum {
			goal = draft.Portion(peaks[i], target, sum)
		}
		if !h.options.NoRecompute {
			h.sequence = append(h.sequence, c.sequence(i, goal, c.Job().Worth(), minWeight)...)
		}
	}
	slices.SortStableFunc(h.sequence, func(a, b recomputable) int {
		return cmp.Or(cmp.Compare(a.class, b.class), cmp.Compare(b.bytes, a.bytes))
	})
}

// minWeight is the smallest weight of all jobs.
func (h *hybrid) minWeight() int {
	smallest := scheduler.MaxWeight
	for i := range h.s.Request.Jobs {
		smallest = min(smallest, h.s.Request.Jobs[i].Worth())
	}
	return smallest
}

// plan recomputes the first k of the sequence and swaps what costs no time, until the sum of the peaks is at the
// target.
func (h *hybrid) plan(k int, target graph.Bytes) []*draft.Draft {
	steps, _ := h.recompute(k)
	return h.swap(steps, target)
}

// recompute returns the steps of each group with the first k of the sequence recomputed, and what is lost by that.
func (h *hybrid) recompute(k int) (steps [][]draft.Step, lost int64) {
	touched := h.choose(k)
	steps = slices.Clone(h.base)
	for i := range steps {
		if touched[i] {
			steps[i], _ = h.chains[i].insert()
			lost += weigh(h.chains[i].Draft, addedTime(h.chains[i].Draft, steps[i]))
		}
	}
	return steps, lost
}

// swap swaps what costs no time between the steps of each group.
func (h *hybrid) swap(steps [][]draft.Step, target graph.Bytes) []*draft.Draft {
	jobs := make([]*draft.Draft, len(steps))
	for i := range jobs {
		jobs[i] = h.s.Group(h.groups[i], steps[i], h.options.style())
		jobs[i].Beside(h.beside)
	}
	h.s.Together(jobs)
	if !h.options.NoSwap {
		draft.SwapFreely(jobs, target)
	}
	return jobs
}

// choose marks the first k of the sequence as recomputed, and returns which groups have one.
func (h *hybrid) choose(k int) []bool {
	for _, c := range h.chains {
		c.clear()
	}
	jobs := make([]bool, len(h.base))
	h.s.Count(k + len(h.chains))
	for i := range h.sequence[:k] {
		r := &h.sequence[i]
		h.chains[r.group].mark(r)
		jobs[r.group] = true
	}
	return jobs
}

// reach looks for drafts whose peaks add up to at most the target and that lose as little time as can be found, or else
// for the lowest: they are the best.
func (h *hybrid) reach(target graph.Bytes) {
	h.best = nil
	plain := h.try(0, target)
	if plain.peak <= target {
		return
	}
	if h.tight {
		h.prepare(target)
	} else {
		h.prepare(roomy)
	}
	if h.last == 0 {
		h.last = h.guess(plain.slots - target)
	}
	tried, found := h.shortest(target)
	h.missed = h.missed || !found
	tried = append(tried, plain)
	lowest := slices.MinFunc(tried, func(a, b *trial) int { return cmp.Compare(a.peak, b.peak) })
	if h.best == nil || h.best.peak > target && lowest.peak < h.best.peak {
		h.complete(lowest, target)
	}
	h.stretchSome(tried, target)
}

// stall is how long a copy of so many bytes takes out and in, for the job of least weight.
func (h *hybrid) stall(bytes graph.Bytes) int64 {
	return int64(h.s.Request.Out.Time(bytes)+h.s.Request.In.Time(bytes)) * int64(h.minWeight())
}

func (h *hybrid) bestTrial() *trial { return h.best }

func (h *hybrid) hasMissed() bool { return h.missed }

// roomy is a target for a sequence that takes no heed of how much memory there is. In one that does, what is made early
// for others stays only where there is room for it. That costs more time, and prefixes come lower.
const roomy = graph.Bytes(1) << 62

// shortest looks for the shortest prefix that reaches the target, and returns what it tried. The search starts where
// the prefix recomputes as many bytes as must be saved, or where the search for the last target ended, and doubles its
// steps from there. What is recomputed late may hold the peak itself; so where the search ends above the target, it
// tries a few prefixes more. It reports false if all prefixes are above the target. One that loses more than it may is
// not tried; it passes for one that reaches the target, as shorter ones are to be looked at.
func (h *hybrid) shortest(target graph.Bytes) (tried []*trial, found bool) {
	dear := len(h.sequence) + 1 // the shortest prefix that is known to lose more than it may
	try := func(k int) bool {
		t := h.try(k, target)
		if t == nil {
			dear = min(dear, k)
			return true
		}
		tried = append(tried, t)
		return t.peak <= target
	}
	low, high := -1, len(h.sequence)+1 // low is not enough; high is, or nothing is
	k0 := min(h.last, len(h.sequence))
	k := k0
	for step := 1 + len(h.sequence)/64; ; step *= 2 { // away from the guess, until what is wanted lies between
		if try(k) {
			high = k
			if low >= 0 || k == 0 {
				break
			}
			k = max(0, k-step)
		} else {
			low = k
			if high <= len(h.sequence) || k == len(h.sequence) {
				break
			}
			k = min(len(h.sequence), k+step)
		}
	}
	if high > len(h.sequence) {
		high = h.around(k0, try)
		low = -1
		for _, t := range tried {
			if t.k < high && t.peak > target {
				low = max(low, t.k)
			}
		}
	}
	for high <= len(h.sequence) && low+1 < high {
		if k := (low + 1 + high) / 2; try(k) {
			high = k
		} else {
			low = k
		}
	}
	if found = high <= len(h.sequence); found && high < dear {
		h.last = high
	}
	return tried, found
}

// around tries prefixes above and below one until one is enough. It returns that, or more than the sequence has.
func (h *hybrid) around(k int, try func(int) bool) int {
	const parts = 8
	for part := 1; part < parts; part++ {
		above, below := k+(len(h.sequence)-k)*part/parts, k-k*part/(4*parts)
		if above > k && try(above) {
			return above
		}
		if below < k && try(below) {
			return below
		}
	}
	return len(h.sequence) + 1
}

// stretchSome lets steps wait where a prefix that was tried is not enough, for the prefixes that promise to lose least
// time: what they recompute, and twice the time that the link needs for the bytes above the target.
func (h *hybrid) stretchSome(tried []*trial, target graph.Bytes) {
	if h.options.NoStall {
		return
	}
	const most = 3
	promised := func(t *trial) int64 { return t.lost + h.stall(max(0, t.peak-target)) }
	slices.SortStableFunc(tried, func(a, b *trial) int {
		return cmp.Or(cmp.Compare(promised(a), promised(b)), cmp.Compare(a.k, b.k))
	})
	n := 0
	for i, t := range tried {
		if t.peak <= target || i > 0 && t.k == tried[i-1].k {
			continue
		}
		bar, known := h.most, n > 0 && h.most < unlimited
		if h.best.peak <= target {
			bar, known = h.best.lost, true
		}
		if n++; known && (n > most || bar <= t.lost+(promised(t)-t.lost)/2) {
			break
		}
		h.complete(t, target)
		h.stretch(t, target)
	}
}

// stretch lets steps of a trial wait until its peaks are at the target. How long is estimated; so swaps are planned
// anew, a few times if need be. If they never reach the target, those of the estimate do.
func (h *hybrid) stretch(t *trial, target graph.Bytes) {
	const rounds = 6
	jobs := t.jobs
	for round := 1; ; round++ {
		stretched := stretchAll(jobs, target)
		if round == rounds || h.options.NoSwap {
			h.keep(stretched, t.k, target)
			return
		}
		steps := make([][]draft.Step, len(jobs))
		var lost int64
		for i, d := range stretched {
			steps[i] = d.Steps()
			lost += weigh(d, addedTime(d, steps[i]))
		}
		if lost > h.most || h.best.peak <= target && lost >= h.best.lost {
			return
		}
		jobs = h.swap(steps, target)
		if next := h.keep(jobs, t.k, target); next.peak <= target {
			return
		}
	}
}

// stretchAll stretches drafts until the sum of their peaks is at the target. Of what is above it each job is to free a
// part in proportion to its peak, the less the more weight it has; what some cannot do is left to the others.
func stretchAll(jobs []*draft.Draft, target graph.Bytes) []*draft.Draft {
	all := draft.Clones(jobs)
	stuck := make([]bool, len(all))
	parts := make([]graph.Bytes, len(all))
	for range all {
		var whole graph.Bytes
		for i, d := range all {
			_, high := d.High()
			parts[i] = d.Copies() * high * scheduler.MaxWeight / graph.Bytes(d.Job().Worth())
			if !stuck[i] {
				whole += parts[i]
			}
		}
		over := draft.SumOfPeaks(all) - target
		if over <= 0 || whole == 0 {
			break
		}
		for i, d := range all {
			if !stuck[i] {
				_, high := d.High()
				free := draft.Portion(over, parts[i], whole)/d.Copies() + 1 // rounded up
				stuck[i] = !d.Stretch(high - free)
			}
		}
	}
	return all
}

// guess returns a prefix that recomputes so many bytes, 1 at least.
func (h *hybrid) guess(bytes graph.Bytes) int {
	for k, s := range h.sequence {
		if bytes -= s.bytes * h.chains[s.group].Copies(); bytes <= 0 {
			return k + 1
		}
	}
	return max(1, len(h.sequence))
}

// try plans with a prefix; nil: it is not empty, and loses more than it may. What swaps came to for a target far above
// this one is not made again.
func (h *hybrid) try(k int, target graph.Bytes) *trial {
	if t, ok := h.floors[k]; ok && target < t.peak-t.peak/far {
		if k > 0 && t.lost > h.most {
			return nil
		}
		return &t
	}
	steps, lost := h.recompute(k)
	if k > 0 && lost > h.most {
		return nil
	}
	t := h.keep(h.swap(steps, target), k, target)
	if t.peak > target && t.peak == t.slots {
		h.floors[k] = trial{k: k, peak: t.peak, slots: t.slots, lost: t.lost}
	}
	return t
}

// far is the part of a peak by which a target is far below it.
const far = 32

// complete makes the drafts of a trial that has none.
func (h *hybrid) complete(t *trial, target graph.Bytes) {
	if t.jobs == nil {
		*t = *h.keep(h.plan(t.k, target), t.k, target)
	}
}

// keep remembers what reaches the target and loses least, or else what is lowest.
func (h *hybrid) keep(jobs []*draft.Draft, k int, target graph.Bytes) *trial {
	t := &trial{jobs: jobs, k: k, peak: draft.SumOfPeaks(jobs), lost: h.lostTime(jobs)}
	for _, d := range jobs {
		_, peak := d.Peak()
		t.slots += peak * d.Copies()
	}
	switch b := h.best; {
	case b == nil, t.peak <= target && (b.peak > target || t.lost < b.lost), b.peak > target && t.peak < b.peak:
		h.best = t
	}
	return t
}

// unplannedTime is what an iteration of the jobs of a group takes without a plan, in the time of drafts.
func (h *hybrid) unplannedTime(group int) time.Duration {
	if h.took == nil {
		for _, group := range h.groups {
			h.took = append(h.took, h.s.Serial(h.s.Groups()[group][0]))
		}
	}
	return h.took[group]
}

// lostTime is what drafts take more than the steps without a plan, by weight: what is planned, or, where copies are not
// booked exactly, what a replay says.
func (h *hybrid) lostTime(jobs []*draft.Draft) (sum int64) {
	for i, d := range jobs {
		lost := addedTime(d, d.Steps())
		if !d.Exact() {
			lost = d.Replay() - h.unplannedTime(i)
		}
		sum += weigh(d, lost)
	}
	return sum
}

// addedTime is what steps of a draft's job take more than those without a plan: they wait, and some are repeated.
func addedTime(d *draft.Draft, steps []draft.Step) (lost time.Duration) {
	for _, s := range steps {
		lost += s.Wait
		if s.Want >= 0 {
			lost += d.Latency(s.Op)
		}
	}
	return lost
}

// weigh returns a time that each of the jobs of a draft loses, by weight.
func weigh(d *draft.Draft, lost time.Duration) int64 {
	return int64(lost) * int64(d.Job().Worth()) * int64(d.Copies())
}
