package vdnn

import (
	"slices"

	"tensile/scheduler/rivals/layer"

	"tensile/graph"
	"tensile/plan"
)

// restrictFrees has a plan that frees everything after its last use free what the paper frees alone: at the end of a
// layer's backward what the layer made, Y, and the gradient of that, dY (III-B). All else stays to the end of the
// iteration: gradients of parameters, and all of forward until backward comes to it.
func restrictFrees(g *graph.Graph, p *plan.Plan, layers []layer.Layer, of []int) {
	end := make([]int, len(layers)) // the last slot of each layer's backward
	for n := len(layers) - 1; n >= 0; n-- {
		switch l := &layers[n]; {
		case len(l.Backward) > 0:
			end[n] = int(l.Backward[len(l.Backward)-1])
		case n+1 < len(layers):
			end[n] = end[n+1] // a sum passes its gradient on
		default:
			end[n] = len(g.Ops) - 1
		}
	}
	until := slices.Repeat([]int{-1}, len(g.Storages)) // -1: to the end
	for op := range g.Ops {
		n := of[op]
		if n < 0 {
			continue
		}
		if g.Ops[op].Forward == graph.NoOp {
			for _, v := range g.Writes(graph.OpID(op)) {
				until[v.Storage] = max(until[v.Storage], end[n])
			}
			continue
		}
		for _, t := range g.Ops[op].Inputs {
			if s := g.Tensors[t].Storage; g.Storages[s].Role == graph.Gradient {
				until[s] = max(until[s], end[n])
			}
		}
	}
	for i := range p.Moves {
		m := &p.Moves[i]
		switch {
		case m.Kind != plan.Drop:
		case until[m.Storage] < 0 || of[m.After] < 0: // the optimizer uses it last
			m.After = len(g.Ops) - 1
		default:
			m.After = max(m.After, until[m.Storage])
		}
	}
	plan.Sort(p.Moves)
}
