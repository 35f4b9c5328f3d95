package program

import (
	"fmt"

	"tensile/graph"
	"tensile/plan"
)

// Prove compiles a plan at the places of a layout and has the result proven, as proof.Prove says: neither plan nor layout
// is trusted.
func Prove(g *graph.Graph, p *plan.Plan, l *Placement, o Options) (Proven, error) {
	if o.Tick == nil {
		o.Tick = func(int) {}
	}
	return ProveBy(g, p, l, func(l *Placement) *Program { return Compile(g, p, l, o) }, o.Tick)
}

// ProveGroups divides a program into groups, as Divide does, and has them proven. An error is a mistake of Divide, or
// says that there is no program.
func ProveGroups(p Proven, page, every graph.Bytes) (Divided, error) {
	if p.Program() == nil {
		return ProveGroupsBy(p, nil)
	}
	d, err := ProveGroupsBy(p, Divide(p.Program(), page, every))
	if err != nil {
		return Divided{}, fmt.Errorf("program: groups for pages of %s, cut every %s: %w", page, every, err)
	}
	return d, nil
}
