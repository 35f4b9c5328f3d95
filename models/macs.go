package models

import "tensile/graph"

// MACs is the arithmetic of a forward pass as papers and tables count it: the multiply-adds of convolutions and matrix
// products, of the whole batch.
func MACs(g *graph.Graph) int64 {
	var flops int64
	for _, op := range g.Ops {
		if op.Phase != graph.Forward {
			continue
		}
		switch op.Kind {
		case graph.Conv2D, graph.Conv2DDX, graph.Linear, graph.MatMul:
			flops += g.Cost(op.ID).FLOPs
		}
	}
	return flops / 2
}
