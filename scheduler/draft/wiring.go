package draft

import (
	"slices"

	"tensile/graph"
	"tensile/plan/program"
	"tensile/scheduler"
)

// wiring is what planning asks of a job's graph, in flat lists that are made once.
type wiring struct {
	g       *graph.Graph
	bytes   []graph.Bytes          // per storage, rounded up to the alignment
	touches lists[graph.StorageID] // per op: the storages that it reads or makes
	makes   lists[graph.StorageID] // per op: the storages that it makes a version of
	pure    []bool                 // per op
	again   []bool                 // per op: it may be repeated
	home    graph.Bytes            // the size of the host slots
	// per storage: what a slot takes of the host if it is swapped; 0 for what lives there
	spills []graph.Bytes
}

func newWiring(g *graph.Graph, align graph.Bytes, tick func(steps int)) *wiring {
	w := &wiring{g: g, bytes: make([]graph.Bytes, len(g.Storages)), pure: make([]bool, len(g.Ops)),
		again: make([]bool, len(g.Ops))}
	var slots []graph.Bytes
	slots, w.home = program.HostSlots(g)
	w.spills = make([]graph.Bytes, len(g.Storages))
	for i := range g.Storages {
		w.bytes[i] = scheduler.RoundUp(g.Storages[i].Bytes, align)
		if slots[i] < 0 {
			w.spills[i] = program.HostBytes(g.Storages[i].Bytes)
		}
	}
	operands := 0
	for i := range g.Ops {
		operands += len(g.Ops[i].Inputs) + len(g.Ops[i].Outputs)
	}
	w.touches = newLists[graph.StorageID](len(g.Ops), operands)
	w.makes = newLists[graph.StorageID](len(g.Ops), operands)
	for i := range g.Ops {
		tick(64)
		op := &g.Ops[i]
		from := len(w.touches.all)
		touch := func(t graph.TensorID) {
			if s := g.Tensors[t].Storage; !slices.Contains(w.touches.all[from:], s) {
				w.touches.all = append(w.touches.all, s)
			}
		}
		for _, t := range op.Inputs {
			touch(t)
		}
		for _, t := range op.Outputs {
			touch(t)
			w.makes.all = append(w.makes.all, g.Tensors[t].Storage)
		}
		w.touches.close()
		w.makes.close()
		w.pure[i], w.again[i] = g.Pure(op.ID), g.Repeatable(op.ID)
	}
	return w
}

// Bytes returns the size of a storage, rounded up to the alignment.
func (w *wiring) Bytes(s graph.StorageID) graph.Bytes { return w.bytes[s] }

// Storages returns how many storages the graph has.
func (w *wiring) Storages() int { return len(w.bytes) }

// Touches returns the storages that an op reads or makes, each once. The lists are the wiring's own.
func (w *wiring) Touches(op graph.OpID) []graph.StorageID { return w.touches.list(int(op)) }

// Makes returns the storages that an op makes a version of.
func (w *wiring) Makes(op graph.OpID) []graph.StorageID { return w.makes.list(int(op)) }

// Operands is the length of all lists of Touches together.
func (w *wiring) Operands() int { return len(w.touches.all) }

// Pure reports whether an op makes only fresh storages, and may be executed again.
func (w *wiring) Pure(op graph.OpID) bool { return w.pure[op] }

// Repeatable reports whether an op may be executed again; if it updates in place, after the ops that made the versions
// before.
func (w *wiring) Repeatable(op graph.OpID) bool { return w.again[op] }
