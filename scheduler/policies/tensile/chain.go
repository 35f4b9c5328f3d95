package tensile

import (
	"cmp"
	"math/bits"
	"slices"
	"time"

	"tensile/graph"
	"tensile/peak"
	"tensile/scheduler/draft"
)

// chains says which storages of a job can be recomputed, and at what cost, when inputs of their ops are recomputed or
// released too and have to be made again first. TENSILE excludes such storages (IV-D). With them, nothing of a run of
// cheap ops between two kept storages has to be kept.
//
// Slots are those of the steps without recomputations. A storage that is recomputed is away in one gap of it, the one
// over the turn from the forward to the backward pass or over the peak. Another storage's chain may need it before that gap ends. Then
// it stays from there on, or, if there is no room for it (brief), it is made for this chain alone, and once more later.
// An input that no step uses any more is made again too, or, where that costs less, kept alive.
type chains struct {
	*draft.Draft
	gaps     []*draft.Gap // per storage: the gap in which it can be recomputed; nil: none
	noChains bool         // an op whose inputs are not there is not repeated

	// What is chosen, per storage.
	chosen []bool // it is recomputed in its gap
	brief  []bool // what others' chains make of it does not stay until its gap ends
	alive  []bool // it is kept after its last use, for chains

	// What the sequence is made by. See price.
	estimate *peak.Curve
	goal     graph.Bytes       // of the estimate
	roomy    bool              // the goal is what the estimate has come down to
	sparing  graph.Bytes       // of 1024 bytes that are not chosen yet, those that the estimate leaves out
	since    []int             // per chosen storage: the slot from which on it is there again
	needs    [][]int           // per storage: the slots before which chains read it
	trial    recomputable      // the choice that is being priced
	made     []graph.StorageID // by the chain that is being priced
	read     []need
}

// need says that a chain reads or makes a storage before a slot.
type need struct {
	storage graph.StorageID
	at      int
}

// maxDepth is the largest number of ops in a chain.
const maxDepth = 16

// recomputable is a storage that can be recomputed, with what that takes when all before it in the sequence are
// recomputed too.
type recomputable struct {
	group   int // of equal jobs
	storage graph.StorageID
	class   int // in classes of time per byte, less first
	bytes   graph.Bytes
	since   []need            // itself, and what is made earlier for it and stays
	brief   []graph.StorageID // that become brief for it
	alive   []graph.StorageID // that are kept alive for it
}

func newChains(d *draft.Draft, noChains bool) *chains {
	n := d.Storages()
	c := &chains{Draft: d, gaps: make([]*draft.Gap, n), chosen: make([]bool, n), since: make([]int, n),
		brief: make([]bool, n), alive: make([]bool, n), noChains: noChains}
	d.Count(len(d.Gaps()))
	phase := func(slot int) graph.Phase { return d.Graph().Ops[d.Steps()[slot].Op].Phase }
	highest, _ := d.Peak()
	for _, x := range d.Gaps() {
		s := x.Storage()
		role := d.Graph().Storages[s].Role
		if role.FromHost() || role == graph.Output || x.To()-x.From() < 3 || !c.repeatable(s) ||
			int(c.Writes(s)[len(c.Writes(s))-1]) > x.From() {
			continue
		}
		turns := phase(x.From()) == graph.Forward && phase(x.To()) != graph.Forward
		if !turns && !(x.From() < highest && highest < x.To()) {
			continue // a recomputation there frees nothing where memory is short
		}
		if y := c.gaps[s]; y == nil || y.To()-y.From() < x.To()-x.From() {
			c.gaps[s] = x
		}
	}
	return c
}

// repeatable reports whether a storage can be made again: by the ops that made its versions, each of this one alone if
// it updates in place.
func (c *chains) repeatable(s graph.StorageID) bool {
	made := c.Writes(s)
	for i, slot := range made {
		op := c.Steps()[slot].Op
		if !c.Repeatable(op) || i > 0 && len(c.Makes(op)) > 1 {
			return false
		}
	}
	return len(made) > 0
}

// takes is how long the ops take that make a storage.
func (c *chains) takes(s graph.StorageID) (sum time.Duration) {
	for _, slot := range c.Writes(s) {
		sum += c.Latency(c.Steps()[slot].Op)
	}
	return sum
}

// absence is what has to be done before a storage can be read at a slot.
type absence int

const (
	present absence = iota
	away            // it is recomputed, and not there yet
	dead            // nothing uses it any more
	lost            // what it held is overwritten
)

// absent says how the storage, read by an op that ran in slot made, is found before slot at.
func (c *chains) absent(s graph.StorageID, made, at int) absence {
	for _, slot := range c.Writes(s) {
		if made < int(slot) && int(slot) < at {
			return lost
		}
	}
	switch x := c.gaps[s]; {
	case c.Graph().Storages[s].Role.FromHost():
		return present
	case c.LastUse(s) < at && c.alive[s]:
		return present
	case c.LastUse(s) < at:
		return dead
	case c.chosen[s] && x.From() < at-1 && at <= x.To():
		return away
	}
	return present
}

// price returns how long it takes to make a storage again just before a slot, beside what the chosen ones take
// already: its ops, what has to be made for it, and the bytes at this rate that have to be kept for it. It returns
// false if that is not possible or takes longer than the limit. What was found is in the trial.
func (c *chains) price(s graph.StorageID, at, depth int, limit time.Duration, rate perGiB) (time.Duration, bool) {
	sum := c.takes(s)
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
			if how == away && c.back(y) <= at {
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
		stays := how == away && !c.brief[y] && c.fits(y, at, c.back(y))
		if stays {
			limit += c.takes(y)
		}
		more, ok = c.price(y, at, depth+1, limit, rate)
		switch {
		case ok && stays:
			c.trial.since = append(c.trial.since, need{y, at})
			return more - c.takes(y), true
		case ok && how == away:
			c.trial.brief = append(c.trial.brief, y)
			return more, true
		}
	}
	if keep := rate.of(c.Bytes(y)); how == dead && (!ok || keep < more) {
		c.made, c.read, c.trial = c.made[:made], c.read[:read], before
		c.trial.alive = append(c.trial.alive, y)
		return keep, true
	}
	return more, ok
}

// back is the slot from which on a chosen storage is there again, by what is chosen and by the trial.
func (c *chains) back(s graph.StorageID) int {
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

// try prices a storage that is not chosen. It returns false if that costs more than what is allowed. Chains that read it
// in its gap have it made before the first of them.
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

// mark marks a storage of the sequence as recomputed.
func (c *chains) mark(r *recomputable) {
	c.chosen[r.storage], c.since[r.storage] = true, c.gaps[r.storage].To()
	for _, n := range r.since {
		c.since[n.storage] = min(c.since[n.storage], n.at)
	}
	for _, y := range r.brief {
		c.brief[y] = true
	}
	for _, y := range r.alive {
		c.alive[y] = true
	}
}

// clear marks nothing as recomputed.
func (c *chains) clear() {
	clear(c.chosen)
	clear(c.brief)
	clear(c.alive)
}

// perGiB is the cost of freeing bytes: time for 2^30 of them.
type perGiB time.Duration

func (p perGiB) of(b graph.Bytes) time.Duration {
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
			allowed := limit.of(c.Bytes(s)) * time.Duration(minWeight) / time.Duration(weight)
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
	c.estimate = peak.NewCurve(c.Unswapped())
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

// insert returns the steps with the recomputations of the chosen storages, each just before the access behind its gap
// or before the chain that reads it first.
func (c *chains) insert() (steps []draft.Step, took time.Duration) {
	c.Count(2*c.Operands() + 2*c.Storages())
	w := &chainWriter{chains: c, last: slices.Repeat([]int{-2}, c.Storages()), made: make([]bool, c.Storages())}
	back := make([][]graph.StorageID, len(c.Steps())+1) // per slot
	for s, chosen := range c.chosen {
		if chosen {
			back[c.since[s]] = append(back[c.since[s]], graph.StorageID(s))
		}
	}
	for slot, s := range c.Steps() {
		w.group = len(w.steps) - 1
		for _, y := range back[slot] {
			w.make(y, slot)
		}
		w.emit(s)
	}
	return w.steps, w.took
}

type chainWriter struct {
	*chains
	steps []draft.Step
	took  time.Duration // of all recomputations
	last  []int         // per storage: the last of the steps that touches it
	made  []bool        // per storage: it was made again and stays until its gap ends
	group int           // the last step before those that are inserted at the present slot
}

func (w *chainWriter) emit(s draft.Step) {
	for _, y := range w.Touched(s) {
		w.last[y] = len(w.steps)
	}
	w.steps = append(w.steps, s)
}

// make makes a storage again before a slot, and before that what has to be made for it.
func (w *chainWriter) make(s graph.StorageID, at int) {
	if w.made[s] && at <= w.LastUse(s) {
		return
	}
	w.made[s] = w.made[s] || at <= w.LastUse(s) && w.since[s] <= at
	if w.last[s] >= w.group {
		return // it is there for a step just before
	}
	for _, slot := range w.Writes(s) {
		op := w.Steps()[slot].Op
		w.Count(4 * len(w.Touches(op)))
		for _, y := range w.Touches(op) {
			if slices.Contains(w.Makes(op), y) || y == s {
				continue
			}
			if how := w.absent(y, int(slot), at); how == away || how == dead {
				w.make(y, at)
			}
		}
	}
	for _, slot := range w.Writes(s) {
		op := w.Steps()[slot].Op
		w.emit(draft.Step{Op: op, Want: s})
		w.took += w.Latency(op)
	}
}
