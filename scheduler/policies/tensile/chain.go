package tensile

import (
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
// over the turn from the forward to the backward pass or over the peak. Another storage's chain may need it before that
// gap ends. Then it stays from there on, or, if there is no room for it (brief), it is made for this chain alone, and
// once more later. An input that no step uses any more is made again too, or, where that costs less, kept alive.
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
	goal     graph.Bytes       // what the estimate is to come down to
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
		if role.FromHost() || role == graph.Output || x.Dies() || x.To()-x.From() < 3 || !c.repeatable(s) ||
			!d.MayLeave(s) || int(c.Writes(s)[len(c.Writes(s))-1]) > x.From() {
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
// it updates something in place.
func (c *chains) repeatable(s graph.StorageID) bool {
	made := c.Writes(s)
	for i, slot := range made {
		op := c.Steps()[slot].Op
		if !c.Repeatable(op) || (i > 0 || !c.Pure(op)) && len(c.Makes(op)) > 1 {
			return false
		}
	}
	return len(made) > 0
}

// remakeTime is how long the ops take that make a storage.
func (c *chains) remakeTime(s graph.StorageID) (sum time.Duration) {
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
	writes := c.Writes(s)
	if i, _ := slices.BinarySearch(writes, int32(made)+1); i < len(writes) && int(writes[i]) < at {
		return lost
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
