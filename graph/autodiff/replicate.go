package autodiff

import (
	"fmt"
	"slices"

	"tensile/graph"
)

// Replicate returns the graph of each of several replicas of a job, which train on batches of their own: a copy in
// which every update reads the mean of its gradient over the replicas (graph.AllReduce). The reduction stands just
// behind the last op before the updates that makes or reads the gradient, so that it goes on beside the rest of the
// backward pass. Statistics that the forward pass keeps, such as those of batch norm, are each replica's own. The graph
// must be valid, with the optimizer's ops last; one replica has the graph itself.
func Replicate(g *graph.Graph, replicas int) (*graph.Graph, error) {
	switch {
	case replicas < 1 || replicas > graph.MaxReplicas:
		return nil, fmt.Errorf("%d replicas: give 1 to %d", replicas, graph.MaxReplicas)
	case replicas == 1:
		return g, nil
	case g.Opaque():
		return nil, fmt.Errorf("graph %s is what a script does, which reduces its gradients itself: give 1 replica",
			g.Name)
	case g.Replicas() > 1 || len(g.Passes) > 0:
		return nil, fmt.Errorf("graph %s has %d replicas and %d passes: give the graph as it was before these", g.Name,
			g.Replicas(), len(g.Passes))
	}
	r := &replication{of: g, replicas: replicas, last: make(map[graph.Version]graph.OpID),
		after: make([][]graph.TensorID, len(g.Ops)), reduced: make(map[graph.TensorID]graph.TensorID)}
	if err := r.find(); err != nil {
		return nil, fmt.Errorf("replicas of graph %s: %w", g.Name, err)
	}
	out := r.build()
	if err := out.Validate(); err != nil {
		return nil, fmt.Errorf("replicas: %w", err)
	}
	return out, nil
}

type replication struct {
	of       *graph.Graph
	replicas int
	last     map[graph.Version]graph.OpID      // before the updates: that makes or reads a content
	after    [][]graph.TensorID                // per op: gradients that may be reduced when it has ended
	reduced  map[graph.TensorID]graph.TensorID // per gradient: its mean
}

// find finds the gradients that updates read, and the place behind which each may be reduced.
func (r *replication) find() error {
	g := r.of
	last := g.LastVersions()
	for i := range g.Ops {
		op := &g.Ops[i]
		if op.Phase != graph.Optimize {
			for _, v := range append(g.Reads(op.ID), g.Writes(op.ID)...) {
				r.last[v] = op.ID
			}
			continue
		}
		switch op.Kind {
		case graph.SGD, graph.Momentum, graph.Adam:
		default:
			return fmt.Errorf("op %s: what of it is a gradient is not known of a %s", op.Name, op.Kind)
		}
		d := op.Inputs[1]
		v := g.Version(d)
		behind, made := r.last[v]
		s := &g.Storages[v.Storage]
		switch whole := g.Tensors[d].Bytes() == s.Bytes; {
		case !made || s.Role != graph.Gradient || v.Number != last[s.ID]:
			return fmt.Errorf("op %s: %s is not what an op of the backward pass makes last", op.Name,
				g.Tensors[d].Name)
		case !whole:
			return fmt.Errorf("op %s: it reads a part of gradient %s", op.Name, s.Name)
		}
		if !slices.Contains(r.after[behind], d) {
			r.after[behind] = append(r.after[behind], d)
		}
	}
	return nil
}

// build writes the graph.
func (r *replication) build() *graph.Graph {
	g := r.of
	out := &graph.Graph{Name: g.Name, Storages: slices.Clone(g.Storages), Tensors: slices.Clone(g.Tensors)}
	ids := make([]graph.OpID, len(g.Ops)) // per op of g: in out
	for i := range g.Ops {
		op := g.Ops[i]
		ids[i] = graph.OpID(len(out.Ops))
		op.ID, op.Inputs, op.Outputs = ids[i], slices.Clone(op.Inputs), slices.Clone(op.Outputs)
		if op.Forward != graph.NoOp {
			op.Forward = ids[op.Forward]
		}
		if op.Phase == graph.Optimize {
			op.Inputs[1] = r.reduced[op.Inputs[1]]
		}
		out.Ops = append(out.Ops, op)
		for _, d := range r.after[i] {
			mean := out.Tensors[d]
			mean.ID, mean.Version = graph.TensorID(len(out.Tensors)), mean.Version+1
			out.Tensors = append(out.Tensors, mean)
			r.reduced[d] = mean.ID
			out.Ops = append(out.Ops, graph.Op{ID: graph.OpID(len(out.Ops)), Name: mean.Name + ".mean",
				Kind: graph.AllReduce, Inputs: []graph.TensorID{d}, Outputs: []graph.TensorID{mean.ID},
				Attrs: graph.Attrs{Replicas: r.replicas}, Phase: graph.Backward, Layer: op.Layer, Forward: op.Forward})
		}
	}
	return out
}
