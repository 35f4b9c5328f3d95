package scheduler

import (
	"slices"

	"tensile/graph"
)

// wiring is what planning asks of a job's graph, in flat lists that are made once.
type wiring struct {
	g       *graph.Graph
	bytes   []graph.Bytes // per storage, rounded up to the alignment
	touches lists         // per op: the storages that it reads or makes
	makes   lists         // per op: the storages that it makes a version of
	pure    []bool        // per op
	late    bool          // the order is that of the graph, whatever is asked for
}

// lists is a list of storages per op.
type lists struct {
	begin []int32
	all   []graph.StorageID
}

func (l *lists) of(op graph.OpID) []graph.StorageID { return l.all[l.begin[op]:l.begin[op+1]] }

// close ends the list of the next op.
func (l *lists) close() { l.begin = append(l.begin, int32(len(l.all))) }

func newWiring(g *graph.Graph, align graph.Bytes) *wiring {
	w := &wiring{g: g, bytes: make([]graph.Bytes, len(g.Storages)), pure: make([]bool, len(g.Ops))}
	for i := range g.Storages {
		w.bytes[i] = rounded(g.Storages[i].Bytes, align)
	}
	operands := 0
	for i := range g.Ops {
		operands += len(g.Ops[i].Inputs) + len(g.Ops[i].Outputs)
	}
	w.touches = lists{append(make([]int32, 0, len(g.Ops)+1), 0), make([]graph.StorageID, 0, operands)}
	w.makes = lists{append(make([]int32, 0, len(g.Ops)+1), 0), make([]graph.StorageID, 0, operands/2)}
	for i := range g.Ops {
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
		w.pure[i] = g.Pure(op.ID)
	}
	return w
}
