package randtest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"tensile/graph"
	"tensile/plan"
)

// absent is the version of a storage that is not there.
const absent = -1

// style is how likely a plan does what it may do.
type style struct {
	out, drop, in float64 // copies out, drops, and copies in before they are needed, per storage and boundary
	dead          float64 // drops of what nobody needs
	again         float64 // chance that making a storage again is taken for possible at all
	early         float64 // executions before they are needed, per lost storage and boundary
	part          float64 // outputs left out of an execution
}

func newStyle(rng *rand.Rand) style {
	mostly := func(x float64) float64 { return []float64{0, x / 4, x, 4 * x}[rng.IntN(4)] }
	return style{out: mostly(0.1), drop: mostly(0.15), in: mostly(0.1), dead: []float64{0.05, 0.5, 1}[rng.IntN(3)],
		again: []float64{0, 0.5, 1}[rng.IntN(3)], early: mostly(0.03), part: mostly(0.1)}
}

// New returns a random plan that proof.Validate accepts. scratch holds the bytes that each op needs.
func New(rng *rand.Rand, g *graph.Graph, scratch []graph.Bytes) *plan.Plan {
	w := &walker{rng: rng, g: g, style: newStyle(rng), scratch: scratch, last: g.LastVersions(),
		plan: &plan.Plan{Job: g.Name, Policy: "random", Graph: g.Digest(), Passes: g.Passes}, order: graphOrder(g)}
	if rng.IntN(3) > 0 {
		w.order = shuffled(rng, g)
	}
	w.begin()
	for at, op := range w.order {
		w.at = at
		w.fetchReads(op)
		w.settle()
		w.release(op)
		w.step(op, w.firstWant(op))
	}
	w.at = len(w.order)
	w.end()
	w.times()
	return w.plan
}

// walker is the state of the walk.
type walker struct {
	rng     *rand.Rand
	g       *graph.Graph
	style   style
	scratch []graph.Bytes
	order   []graph.OpID // of first executions
	plan    *plan.Plan
	last    []int // per storage: its last version

	at      int   // executions from order[at] on are still to come
	device  []int // per storage: version there, or absent
	host    []int
	current []int
	// per storage: its last version may not leave the device, since the host copy is never valid
	kept    []bool
	needs   [][]int         // per storage: ascending places in order that need it on the device or obtainable
	writers map[version]int // place in order that makes a version
	lost    []bool          // per storage: neither on device nor host, to be made again
	pinned  []int           // per storage: how many fetches rely on its staying
	calm    bool            // no random moves after a step
	busy    bool            // something is being made before it is needed
}

type version = graph.Version

// begin draws the state before slot 0 and notes who needs what.
func (w *walker) begin() {
	g, n := w.g, len(w.g.Storages)
	w.device, w.host, w.current = slices.Repeat([]int{absent}, n), slices.Repeat([]int{absent}, n),
		slices.Repeat([]int{absent}, n)
	w.kept, w.lost, w.pinned, w.needs = make([]bool, n), make([]bool, n), make([]int, n), make([][]int, n)
	w.writers = map[version]int{}
	for at, op := range w.order {
		for _, v := range g.Writes(op) {
			w.writers[v] = at
		}
		for _, v := range g.Reads(op) {
			w.need(v.Storage, at)
		}
	}
	entry := w.rng.Float64() * 1.2
	for i, s := range g.Storages {
		switch {
		case s.Role == graph.Input:
			w.host[i], w.current[i] = 0, 0
		case s.Role.Persistent():
			w.current[i], w.kept[i] = 0, w.last[i] > 0 && w.rng.IntN(3) == 0
			if !w.kept[i] {
				w.host[i] = 0
			}
			if w.kept[i] || w.rng.Float64() < entry {
				w.device[i] = 0
				w.plan.Entry = append(w.plan.Entry, s.ID)
			}
		}
	}
	w.boundary()
}

func (w *walker) need(s graph.StorageID, at int) {
	if i, found := slices.BinarySearch(w.needs[s], at); !found {
		w.needs[s] = slices.Insert(w.needs[s], i, at)
	}
}

// next returns the next place that needs a storage, if there is one.
func (w *walker) next(s graph.StorageID) (int, bool) {
	i, _ := slices.BinarySearch(w.needs[s], w.at)
	if i == len(w.needs[s]) {
		return 0, false
	}
	return w.needs[s][i], true
}

func (w *walker) slot() int { return len(w.plan.Steps) - 1 }

func (w *walker) move(kind plan.MoveKind, s graph.StorageID) {
	m := plan.Move{Kind: kind, Storage: s, After: w.slot()}
	if kind != plan.Drop {
		m.Sync = w.rng.IntN(8) == 0
		if w.rng.IntN(8) == 0 {
			m.Delay = time.Duration(w.rng.IntN(20000))
		}
	}
	w.plan.Moves = append(w.plan.Moves, m)
	switch kind {
	case plan.Out:
		w.host[s] = w.device[s]
	case plan.Drop:
		w.device[s] = absent
	case plan.In:
		if w.host[s] != w.current[s] || w.device[s] != absent {
			panic(fmt.Sprintf("randtest: in of %s with device %d, host %d, current %d", w.g.Storages[s].Name,
				w.device[s], w.host[s], w.current[s]))
		}
		w.device[s], w.lost[s] = w.host[s], false
	}
}

// chance tosses a coin.
func (w *walker) chance(p float64) bool { return w.rng.Float64() < p }

// times gives some plans latencies, by which Compile folds delays into triggers.
func (w *walker) times() {
	plan.Sort(w.plan.Moves)
	if w.rng.IntN(2) == 0 {
		for range w.plan.Steps {
			w.plan.Made = append(w.plan.Made, time.Duration(w.rng.IntN(8000)))
		}
	}
}
