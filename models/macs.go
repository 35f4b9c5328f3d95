package models

import "tensile/graph"

// MACs is the arithmetic of a forward pass as papers and tables count it: the multiply-adds of convolutions and matrix
// products, of the whole batch.
func MACs(g *graph.Graph) int64 {
	var flops int64
	for _, op := range g.Ops {
		if op.Phase == graph.Forward && (op.Kind == graph.Conv2D || op.Kind == graph.Linear) {
			flops += g.Cost(op.ID).FLOPs
		}
	}
	return flops / 2
}
