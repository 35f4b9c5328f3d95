package plan

import (
	"tensile/graph"
	"tensile/plan/pool"
)

// Residency is a stay of a storage on the device: one place for one or more spans of slots.
type Residency struct {
	Storage graph.StorageID
	Spans   []pool.Span // of slots, ascending; two when it goes on over the boundary
}

// Stays lists the residencies of a plan and says which step or move begins each.
type Stays struct {
	Residencies []Residency
	Entry       []int   // per storage: the residency that slot 0 begins with, or -1
	Made        [][]int // per step and output: the residency it begins, or -1
	In          []int   // per move: the residency that an In begins or goes on with, else -1
}

// StaysOf returns the residencies of a plan that proof.Validate accepts, first those of Entry, then the others as they
// begin.
func StaysOf(g *graph.Graph, p *Plan) *Stays { return StaysBy(g, p, func(int) {}) }

// StaysBy is StaysOf for a caller who may want to stop: tick is told of every few steps of the work, of some
// nanoseconds each, and may panic.
func StaysBy(g *graph.Graph, p *Plan, tick func(steps int)) *Stays {
	w := &stayWalk{
		Stays: Stays{Entry: make([]int, len(g.Storages)), Made: make([][]int, len(p.Steps)),
			In: make([]int, len(p.Moves))},
		now: make([]int, len(g.Storages)), from: make([]int, len(g.Storages)),
	}
	for s := range g.Storages {
		w.Entry[s], w.now[s] = -1, -1
	}
	for _, s := range p.Entry {
		w.Entry[s] = w.begin(s, 0)
	}
	lastIn := make(map[graph.StorageID]int)
	for i, m := range p.Moves {
		if w.In[i] = -1; m.Kind == In && w.Entry[m.Storage] >= 0 {
			lastIn[m.Storage] = i
		}
	}
	next := w.moves(p, 0, -1, lastIn)
	for slot, step := range p.Steps {
		tick(stepTicks)
		op := &g.Ops[step.Op]
		w.Made[slot] = make([]int, len(op.Outputs))
		for i, t := range op.Outputs {
			w.Made[slot][i] = -1
			if step.Want.Has(i) && g.Fresh(op.ID, i) {
				w.Made[slot][i] = w.begin(g.Tensors[t].Storage, slot)
			}
		}
		next = w.moves(p, next, slot, lastIn)
	}
	for _, s := range p.Entry {
		w.end(s, len(p.Steps))
	}
	return &w.Stays
}

// stepTicks is what a step of a plan and the moves behind it take about, in steps of work.
const stepTicks = 32

type stayWalk struct {
	Stays
	now  []int // per storage: its residency now, or -1
	from []int // per storage: the slot in which the present span began
}

func (w *stayWalk) begin(s graph.StorageID, slot int) int {
	w.now[s], w.from[s] = len(w.Residencies), slot
	w.Residencies = append(w.Residencies, Residency{Storage: s})
	return w.now[s]
}

// end closes the present span of s at slot. The tail of a wrapped residency may touch its head; spans stay ascending
// because the head is closed first.
func (w *stayWalk) end(s graph.StorageID, slot int) {
	r := &w.Residencies[w.now[s]]
	if span := (pool.Span{From: w.from[s], To: slot}); span.From < span.To {
		r.Spans = append(r.Spans, span)
	}
	w.now[s] = -1
}

func (w *stayWalk) moves(p *Plan, next, after int, lastIn map[graph.StorageID]int) int {
	for ; next < len(p.Moves) && p.Moves[next].After == after; next++ {
		switch s := p.Moves[next].Storage; p.Moves[next].Kind {
		case Drop:
			w.end(s, after+1)
		case In:
			if last, ok := lastIn[s]; ok && last == next {
				w.now[s], w.from[s] = w.Entry[s], after+1
			} else {
				w.begin(s, after+1)
			}
			w.In[next] = w.now[s]
		}
	}
	return next
}
