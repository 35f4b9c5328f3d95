package vdnn

import (
	"slices"

	"tensile/scheduler/rivals/each"

	"tensile/graph"
	"tensile/plan"
	"tensile/scheduler"
	"tensile/scheduler/draft"
)

// convolutions are the ops whose inputs TENSILE's authors took for those of vDNN: the backward ops are among them, and
// so the gradients that they read.
var convolutions = []graph.Kind{graph.Conv2D, graph.Conv2DDW, graph.Conv2DDX}

// Tensile is the policy vdnn-tensile: what the public code of TENSILE's authors ran under the name of vDNN
// (GIS-PuppetMaster/tinyflow, branch baseline, TrainExecuteAdam_vDNNconv.py; whether that code made the paper's table
// is not confirmed). It copies every input of a convolution or of its backward that is no parameter out after its last
// use in the whole iteration, waits, and frees it; nothing else is freed before the iteration ends. So nothing ever has
// to come back. The batch, which theirs copies out too, is not copied: the host has it.
func Tensile(s *draft.Session) (scheduler.Result, error) {
	if err := each.NoSwapLimit(s); err != nil {
		return scheduler.Result{}, err
	}
	s.Stage(scheduler.Planning)
	return firstFitting(s, []choice{fastest}, func(i int, c choice) *plan.Plan {
		j := &s.Request.Jobs[i]
		style := draft.Style{Variants: variants(j, c)}
		p := s.Draft(i, draft.FirstSteps(s.GraphOrder(i)), style).Plan(s.Request.Policy)
		s.Count(16 * len(p.Steps))
		copyOutAtLastUse(j.Graph, p)
		return p
	})
}

// copyOutAtLastUse has a plan that frees everything after its last use copy out and free the inputs of convolutions
// there, and free the rest at the end.
func copyOutAtLastUse(g *graph.Graph, p *plan.Plan) {
	read := make([]bool, len(g.Storages))
	for op := range g.Ops {
		if slices.Contains(convolutions, g.Ops[op].Kind) {
			for _, t := range g.Ops[op].Inputs {
				read[g.Tensors[t].Storage] = true
			}
		}
	}
	var outs []plan.Move
	for i := range p.Moves {
		m := &p.Moves[i]
		role := g.Storages[m.Storage].Role
		switch {
		case m.Kind != plan.Drop:
		case !read[m.Storage]:
			m.After = len(p.Steps) - 1
		case role == graph.Activation || role == graph.Gradient:
			outs = append(outs, plan.Move{Kind: plan.Out, Storage: m.Storage, After: m.After, Sync: true})
		}
	}
	p.Moves = append(p.Moves, outs...)
	plan.Sort(p.Moves)
}
