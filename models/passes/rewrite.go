package passes

import (
	"fmt"
	"slices"

	"tensile/graph"
)

// rewrite is a graph that a pass changes.
type rewrite struct {
	g       *graph.Graph // a copy: ops, tensors and storages may be changed and appended
	changed int
	refused []Refusal
	removed map[graph.StorageID]bool // storages that outlive an iteration and are not to stay
}

// newRewrite copies a graph.
func newRewrite(g *graph.Graph) *rewrite {
	next := &graph.Graph{Name: g.Name, Storages: slices.Clone(g.Storages), Tensors: slices.Clone(g.Tensors),
		Ops: slices.Clone(g.Ops), Passes: slices.Clone(g.Passes), Plain: g.Plain}
	if len(g.Passes) == 0 {
		next.Plain = g.Digest()
	}
	for i := range next.Ops {
		op := &next.Ops[i]
		op.Inputs, op.Outputs = slices.Clone(op.Inputs), slices.Clone(op.Outputs)
	}
	return &rewrite{g: next, removed: make(map[graph.StorageID]bool)}
}

// refuse notes a place that stays as it is.
func (r *rewrite) refuse(op *graph.Op, format string, args ...any) {
	r.refused = append(r.refused, Refusal{Op: op.Name, Reason: fmt.Sprintf(format, args...)})
}

// finish removes tensors and storages that no op names any more, numbers the rest again and adds the pass's name to
// the graph's.
func (r *rewrite) finish(name string) *graph.Graph {
	g := r.g
	tensors, storages := make([]bool, len(g.Tensors)), make([]bool, len(g.Storages))
	for _, op := range g.Ops {
		for _, ids := range [2][]graph.TensorID{op.Inputs, op.Outputs} {
			for _, t := range ids {
				tensors[t] = true
				storages[g.Tensors[t].Storage] = true
			}
		}
	}
	for i, s := range g.Storages { // those that the job has stay, used or not
		storages[i] = storages[i] || livesOnHost(s.Role) && !r.removed[s.ID]
	}
	for i, t := range g.Tensors { // what is there before the first op stays, used or not
		tensors[i] = tensors[i] || storages[t.Storage] && t.Version == 0 && g.Storages[t.Storage].Role.FromHost()
	}
	next := &graph.Graph{Name: g.Name, Ops: g.Ops, Passes: append(g.Passes, name), Plain: g.Plain}
	newStorage, newTensor := make([]graph.StorageID, len(g.Storages)), make([]graph.TensorID, len(g.Tensors))
	for i, s := range g.Storages {
		if storages[i] {
			s.ID = graph.StorageID(len(next.Storages))
			newStorage[i] = s.ID
			next.Storages = append(next.Storages, s)
		}
	}
	for i, t := range g.Tensors {
		if tensors[i] {
			t.ID, t.Storage = graph.TensorID(len(next.Tensors)), newStorage[t.Storage]
			newTensor[i] = t.ID
			next.Tensors = append(next.Tensors, t)
		}
	}
	for i := range next.Ops {
		for _, ids := range [2][]graph.TensorID{next.Ops[i].Inputs, next.Ops[i].Outputs} {
			for k, t := range ids {
				ids[k] = newTensor[t]
			}
		}
	}
	return next
}

func livesOnHost(role graph.Role) bool { return role.FromHost() || role == graph.Output }
