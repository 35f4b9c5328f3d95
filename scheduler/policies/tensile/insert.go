package tensile

import (
	"slices"
	"time"

	"tensile/graph"
	"tensile/scheduler/draft"
)

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
	took  time.Duration // the time of all recomputations
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
