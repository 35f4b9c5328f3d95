package compile

import (
	"fmt"

	"tensile/graph"
	"tensile/plan"
	"tensile/plan/program"
	"tensile/plan/proof"
)

// Prove compiles a plan at the places of a layout and has plan, layout and program proven by proof.Prove: neither plan
// nor layout is trusted.
func Prove(g *graph.Graph, p *plan.Plan, l *program.Placement, o Options) (proof.Proven, error) {
	if o.Tick == nil {
		o.Tick = func(int) {}
	}
	return proof.Prove(g, p, l, func(l *program.Placement) *program.Program { return Compile(g, p, l, o) }, o.Tick)
}

// ProveGroups divides a program into groups, as Divide does, and has them proven. An error is a mistake of Divide, or
// says that there is no program.
func ProveGroups(p proof.Proven, page, every graph.Bytes) (proof.Divided, error) {
	if p.Program() == nil {
		return proof.ProveGroups(p, nil)
	}
	d, err := proof.ProveGroups(p, Divide(p.Program(), page, every))
	if err != nil {
		return proof.Divided{}, fmt.Errorf("program: groups for pages of %s, cut every %s: %w", page, every, err)
	}
	return d, nil
}
