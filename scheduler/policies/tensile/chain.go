package tensile

import (
	"cmp"
	"math/bits"
	"slices"
	"time"

	"tensile/graph"
	"tensile/scheduler/draft"
)

// chains says which storages of a job can be recomputed, and at what cost, when inputs of their ops are recomputed or
// released too and have to be made again first. TENSILE excludes such storages (IV-D). With them, nothing of a run of
// cheap ops between two kept storages has to be kept.
//
// Slots are those of the steps without recomputations.
type chains struct {
	*draft.Draft
	longest  []*draft.Gap // per storage: its longest gap, if it can be recomputed in it
	chosen   []bool       // per storage: it is recomputed in its longest gap
	needed   []bool       // per storage: an op that makes a chosen one reads it
	noChains bool         // an op whose inputs are not there is not repeated
}

// maxDepth is the largest number of ops in a chain.
const maxDepth = 16

// recomputable is a storage that can be recomputed.
type recomputable struct {
	job     int
	storage graph.StorageID
	class   int // in classes of time per byte, less first
	bytes   graph.Bytes
}

func newChains(d *draft.Draft, noChains bool) *chains {
	n := d.Storages()
	c := &chains{Draft: d, longest: make([]*draft.Gap, n), chosen: make([]bool, n), needed: make([]bool, n),
		noChains: noChains}
	d.Count(len(d.Gaps()))
	for _, x := range d.Gaps() {
		s := x.Storage()
		role := d.Graph().Storages[s].Role
		if role.FromHost() || role == graph.Output || x.To()-x.From() < 3 || !c.repeatable(s) {
			continue
		}
		if y := c.longest[s]; y == nil || y.To()-y.From() < x.To()-x.From() {
			c.longest[s] = x
		}
	}
	return c
}

// repeatable reports whether a storage has one version, made by a pure op.
func (c *chains) repeatable(s graph.StorageID) bool {
	made := c.Writes(s)
	return len(made) == 1 && c.Pure(c.Steps()[made[0]].Op)
}

// maker is the op that makes a repeatable storage.
func (c *chains) maker(s graph.StorageID) graph.OpID { return c.Steps()[c.Writes(s)[0]].Op }

// absence is what has to be done before a storage can be read at a slot.
type absence int

const (
	present absence = iota
	remade          // it has to be made again
	lost            // that is not possible
)

// absent says how the storage, read by an op that ran in slot made, is found before slot at.
func (c *chains) absent(s graph.StorageID, made, at int) absence {
	for _, slot := range c.Writes(s) {
		if made < int(slot) && int(slot) < at {
			return lost
		}
	}
	switch x := c.longest[s]; {
	case c.Graph().Storages[s].Role.FromHost():
		return present
	case c.LastUse(s) < at && c.repeatable(s):
		return remade
	case c.LastUse(s) < at:
		return lost
	case c.chosen[s] && x.From() < at-1 && at <= x.To():
		return remade
	}
	return present
}

// cost returns how long it takes to make a storage again just before a slot, including all that has to be made for
// it. It returns false if that is not possible or takes longer than the limit.
func (c *chains) cost(s graph.StorageID, at, depth int, limit time.Duration) (time.Duration, bool) {
	op := c.maker(s)
	sum := c.Latency(op)
	if sum > limit {
		return 0, false
	}
	c.Count(2 + 4*len(c.Touches(op)))
	made := int(c.Writes(s)[0])
	for _, y := range c.Touches(op) {
		if slices.Contains(c.Makes(op), y) {
			continue
		}
		switch c.absent(y, made, at) {
		case lost:
			return 0, false
		case remade:
			if depth == maxDepth || c.noChains {
				return 0, false
			}
			more, ok := c.cost(y, at, depth+1, limit-sum)
			if !ok {
				return 0, false
			}
			sum += more
		}
		if sum > limit {
			return 0, false
		}
	}
	return sum, sum <= limit
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

// choose marks a storage as recomputed.
func (c *chains) choose(s graph.StorageID) {
	c.chosen[s] = true
	for _, y := range c.Touches(c.maker(s)) {
		c.needed[y] = true
	}
}

// sequence lists what can be recomputed, cheapest per byte first: in cost classes 25 % apart, and in a class the larger
// first. A storage is costed together with what has to be made for it when everything before it is recomputed too. So
// the last tensors of a long chain are chosen last and usually stay resident. The cost counts weight times, relative
// to the smallest weight of all jobs.
func (c *chains) sequence(job int, weight, minWeight int) []recomputable {
	var order []graph.StorageID
	for s, x := range c.longest {
		if x != nil {
			order = append(order, graph.StorageID(s))
		}
	}
	slices.SortFunc(order, func(a, b graph.StorageID) int { return cmp.Compare(c.Writes(a)[0], c.Writes(b)[0]) })
	var all []recomputable
	limit := perGiB(1 << 20)
	for class := 0; limit <= c.dearest(); class++ {
		c.Count(len(order))
		for _, s := range order {
			if c.chosen[s] || c.noChains && c.needed[s] {
				continue
			}
			allowed := limit.of(c.Bytes(s)) * time.Duration(minWeight) / time.Duration(weight)
			if _, ok := c.cost(s, c.longest[s].To(), 1, allowed); ok {
				c.choose(s)
				all = append(all, recomputable{job, s, class, c.Bytes(s)})
			}
		}
		limit += limit / 4
	}
	clear(c.chosen)
	return all
}

// insert returns the steps with the recomputations of the chosen storages, each just before the access behind its gap.
func (c *chains) insert() (steps []draft.Step, took time.Duration) {
	c.Count(2*c.Operands() + c.Storages())
	w := &chainWriter{chains: c, last: slices.Repeat([]int{-2}, c.Storages()), made: make([]bool, c.Storages())}
	for slot, s := range c.Steps() {
		w.group = len(w.steps) - 1
		for _, y := range c.Touched(s) {
			if c.chosen[y] && c.longest[y].To() == slot && !w.made[y] {
				w.make(y, slot)
			}
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
	made  []bool        // per storage: it was made again in its longest gap
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
	alive := at <= w.LastUse(s)
	if w.made[s] && alive {
		return
	}
	w.made[s] = w.made[s] || alive
	op := w.maker(s)
	for _, y := range w.Touches(op) {
		if !slices.Contains(w.Makes(op), y) && w.absent(y, int(w.Writes(s)[0]), at) == remade {
			w.make(y, at)
		}
	}
	w.Count(4 * len(w.Touches(op)))
	if w.last[s] >= w.group {
		return // it is there for a step just before
	}
	w.emit(draft.Step{Op: op, Want: s})
	w.took += w.Latency(op)
}
