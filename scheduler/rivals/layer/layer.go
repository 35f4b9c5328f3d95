// Package layer finds the layers of a graph as the papers of other methods count them.
package layer

import (
	"slices"

	"tensile/graph"
)

// Layer is a layer as these papers count: a forward op of any kind, with the backward ops that
// belong to it. The statistics, the normalisation and the running update of a batch norm are one. It is finer than
// graph.Op.Layer, which may join a convolution with what follows it.
type Layer struct {
	Kind     graph.Kind        // the kind of the forward op; BatchNorm for a batch norm
	Forward  []graph.OpID      // ascending
	Backward []graph.OpID      // ascending; a sum of gradients is of the layer whose gradient it adds
	X        []graph.StorageID // what its forward ops read of other layers and of the batch, each once
}

// Find returns the layers of a graph, in the order of their first ops, and per op the layer that it belongs to: -1 of
// the optimizer's ops, and of backward ops that belong to no forward op.
func Find(g *graph.Graph) (layers []Layer, of []int) {
	of = make([]int, len(g.Ops))
	writers := make(map[graph.Version]graph.OpID)
	for i := range g.Ops {
		op := &g.Ops[i]
		of[i] = -1
		for _, w := range g.Writes(op.ID) {
			writers[w] = op.ID
		}
		switch {
		case op.Forward != graph.NoOp:
			if of[i] = of[op.Forward]; of[i] >= 0 {
				l := &layers[of[i]]
				l.Backward = append(l.Backward, op.ID)
			}
		case op.Phase == graph.Forward:
			if of[i] = normOf(g, op, writers, of); of[i] < 0 {
				of[i] = len(layers)
				layers = append(layers, Layer{Kind: op.Kind})
			}
			l := &layers[of[i]]
			l.Forward = append(l.Forward, op.ID)
			if op.Kind == graph.BatchNorm {
				l.Kind = op.Kind
			}
			for _, v := range g.Reads(op.ID) {
				w, made := writers[v]
				if !g.Storages[v.Storage].Role.Persistent() && !(made && of[w] == of[i]) &&
					!slices.Contains(l.X, v.Storage) {
					l.X = append(l.X, v.Storage)
				}
			}
		}
	}
	return layers, of
}

// normOf returns the layer of the statistics that a part of a batch norm reads, or -1.
func normOf(g *graph.Graph, op *graph.Op, writers map[graph.Version]graph.OpID, of []int) int {
	var mean graph.TensorID
	switch op.Kind {
	case graph.BatchNorm:
		mean = op.Inputs[1]
	case graph.BatchNormUpdate:
		mean = op.Inputs[0]
	default:
		return -1
	}
	if w, ok := writers[g.Version(mean)]; ok && g.Ops[w].Kind == graph.BatchNormStats {
		return of[w]
	}
	return -1
}
