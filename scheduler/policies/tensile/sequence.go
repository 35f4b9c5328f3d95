package tensile

import (
	"cmp"
	"math/bits"
	"slices"
	"time"

	"tensile/graph"
	"tensile/peak"
)

// perGiB is the cost of freeing bytes: time for 2^30 of them.
type perGiB time.Duration

func (p perGiB) cost(b graph.Bytes) time.Duration {
	high, low := bits.Mul64(uint64(b), uint64(p))
	return time.Duration(high<<34 | low>>30)
}

// dearest is the cost of a swap that stalls for as long as both copies take. A recomputation that costs more is
// useless.
func (c *chains) dearest() perGiB {
	out, in := c.Links()
	return perGiB(out.Time(1<<30) - out.Latency + in.Time(1<<30) - in.Latency)
}

// sequence lists what can be recomputed, cheapest per byte first: in cost classes 25 % apart, and in a class the larger
// first. The cost of a storage is what it takes more when everything before it is recomputed too. So the last tensors
// of a long chain are chosen last and usually stay resident. The cost counts weight times, relative to the smallest
// weight of all jobs.
func (c *chains) sequence(group int, goal graph.Bytes, weight, minWeight int) []recomputable {
	var order []graph.StorageID
	for s, x := range c.gaps {
		if x != nil {
			order = append(order, graph.StorageID(s))
		}
	}
	slices.SortFunc(order, func(a, b graph.StorageID) int {
		return cmp.Or(cmp.Compare(c.Bytes(b), c.Bytes(a)), cmp.Compare(c.Writes(a)[0], c.Writes(b)[0]))
	})
	c.begin(goal)
	var all []recomputable
	limit := perGiB(1 << 20)
	for class := 0; limit <= c.dearest(); class++ {
		c.Count(len(order))
		for _, s := range order {
			if c.chosen[s] || c.noChains && len(c.needs[s]) > 0 {
				continue
			}
			c.trial = recomputable{group: group, storage: s, class: class, bytes: c.Bytes(s)}
			allowed := limit.cost(c.Bytes(s)) * time.Duration(minWeight) / time.Duration(weight)
			if c.try(s, allowed, limit) {
				c.choose(s)
				all = append(all, c.trial)
			}
		}
		limit += limit / 4
	}
	c.clear()
	return all
}

// begin makes what choosing a sequence for a goal needs: an estimate of the footprint, per slot, when the sequence has
// been chosen so far that the goal is reached. Until then all that can be recomputed counts with the part that the goal
// is of the footprint without recomputations. A goal above all footprints stands for the peak of what is chosen.
func (c *chains) begin(goal graph.Bytes) {
	c.needs = make([][]int, c.Storages())
	c.estimate = peak.NewCurve(c.AfterSwaps())
	_, highest := c.estimate.Peak()
	c.roomy = goal >= highest
	if c.goal, c.sparing = highest, 0; !c.roomy {
		const parts = 16 // that the sequences for close goals are the same
		c.goal = (goal*parts/highest + 1) * highest / parts
		c.sparing = 1024 - 1024*c.goal/highest
	}
	for s, x := range c.gaps {
		if x != nil {
			c.estimate.Add(x.From()+1, x.To(), -c.spared(graph.StorageID(s)))
		}
	}
}

// spared is what the estimate leaves out of a storage that is not chosen yet.
func (c *chains) spared(s graph.StorageID) graph.Bytes { return c.Bytes(s) * c.sparing / 1024 }

// maxDepth is the largest number of ops in a chain.
const maxDepth = 16

// price returns how long it takes to make a storage again just before a slot, beside what the chosen ones take
// already: its ops, what has to be made for it, and the bytes at this rate that have to be kept for it. It returns
// false if that is not possible or takes longer than the limit. What was found is in the trial.
func (c *chains) price(s graph.StorageID, at, depth int, limit time.Duration, rate perGiB) (time.Duration, bool) {
	c.Count(len(c.Writes(s)))
	sum := c.remakeTime(s)
	if sum > limit {
		return 0, false
	}
	c.made = append(c.made, s)
	for _, slot := range c.Writes(s) {
		op := c.Steps()[slot].Op
		c.Count(2 + 4*len(c.Touches(op)))
		for _, y := range c.Touches(op) {
			if slices.Contains(c.Makes(op), y) || y == s {
				continue
			}
			how := c.absent(y, int(slot), at)
			if how == away && c.backSlot(y) <= at {
				how = present
			}
			switch {
			case how != lost && (slices.Contains(c.made, y) || slices.Contains(c.trial.alive, y)):
				continue
			case how == present:
				c.read = append(c.read, need{y, at})
				continue
			case how == lost || c.noChains:
				return 0, false
			}
			more, ok := c.priceInput(y, how, at, depth, limit-sum, rate)
			if sum += more; !ok || sum > limit {
				return 0, false
			}
		}
	}
	return sum, true
}

// priceInput prices an input that is away or dead. One that is away is made before it is needed itself; if there is
// room for it until then, that is no second execution. One that is dead is made again or kept alive.
func (c *chains) priceInput(y graph.StorageID, how absence, at, depth int, limit time.Duration,
	rate perGiB) (more time.Duration, ok bool) {
	made, read, before := len(c.made), len(c.read), c.trial
	if depth < maxDepth && c.repeatable(y) {
		stays := how == away && !c.brief[y] && c.fits(y, at, c.backSlot(y))
		if stays {
			limit += c.remakeTime(y)
		}
		more, ok = c.price(y, at, depth+1, limit, rate)
		switch {
		case ok && stays:
			c.trial.since = append(c.trial.since, need{y, at})
			return more - c.remakeTime(y), true
		case ok && how == away:
			c.trial.brief = append(c.trial.brief, y)
			return more, true
		}
	}
	if keep := rate.cost(c.Bytes(y)); how == dead && (!ok || keep < more) {
		c.made, c.read, c.trial = c.made[:made], c.read[:read], before
		c.trial.alive = append(c.trial.alive, y)
		return keep, true
	}
	return more, ok
}

// backSlot is the slot from which on a chosen storage is there again, by what is chosen and by the trial.
func (c *chains) backSlot(s graph.StorageID) int {
	at := c.since[s]
	for _, n := range c.trial.since {
		if n.storage == s {
			at = min(at, n.at)
		}
	}
	return at
}

// fits reports whether there is room for a storage in the slots [from, to).
func (c *chains) fits(s graph.StorageID, from, to int) bool {
	c.Count(estimateSteps)
	return c.estimate.Max(from, to)+c.Bytes(s) <= c.goal
}

// estimateSteps is the work that a look at the estimate counts as.
const estimateSteps = 10

// try prices a storage that is not chosen. It returns false if that costs more than what is allowed. Chains that read
// it in its gap have it made before the first of them.
func (c *chains) try(s graph.StorageID, allowed time.Duration, rate perGiB) bool {
	x := c.gaps[s]
	times := []int{x.To()}
	for _, slot := range c.needs[s] {
		if x.From() < slot-1 && slot < x.To() && !slices.Contains(times, slot) {
			times = append(times, slot)
		}
	}
	c.trial.since, c.trial.brief, c.trial.alive, c.read = nil, nil, nil, c.read[:0]
	if first := slices.Min(times); first == x.To() || c.fits(s, first, x.To()) {
		c.made = c.made[:0]
		c.trial.since = []need{{s, first}}
		_, ok := c.price(s, first, 1, allowed, rate)
		return ok
	}
	c.trial.since, c.trial.brief = []need{{s, x.To()}}, []graph.StorageID{s}
	for _, at := range times { // for each of them, and once more for itself
		c.made = c.made[:0]
		took, ok := c.price(s, at, 1, allowed, rate)
		if !ok {
			return false
		}
		allowed -= took
	}
	return true
}

// choose marks what was tried last as recomputed.
func (c *chains) choose(s graph.StorageID) {
	x := c.gaps[s]
	c.estimate.Add(x.From()+1, x.To(), -c.Bytes(s)+c.spared(s))
	for _, y := range c.trial.alive {
		if !c.alive[y] {
			c.estimate.Add(c.LastUse(y)+1, x.To(), c.Bytes(y))
		}
	}
	c.since[s] = x.To()
	for _, n := range c.trial.since {
		if was := c.since[n.storage]; n.at < was {
			c.estimate.Add(n.at, was, c.Bytes(n.storage))
		}
		c.since[n.storage] = min(c.since[n.storage], n.at)
	}
	for _, r := range c.read {
		if !c.Graph().Storages[r.storage].Role.FromHost() {
			c.needs[r.storage] = append(c.needs[r.storage], r.at)
		}
	}
	c.Count(estimateSteps * (2 + len(c.read) + len(c.trial.alive) + len(c.trial.since)))
	if c.roomy {
		_, c.goal = c.estimate.Peak()
	}
	c.mark(&c.trial)
}
