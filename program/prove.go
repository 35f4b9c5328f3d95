package program

import (
	"tensile/graph"
	"tensile/plan"
)

// Prove returns the program of a plan and its layout after all checks: the plan is valid, and no two uses of the same
// bytes are unordered. A program that did not come from here must not run.
func Prove(g *graph.Graph, p *plan.Plan, l *Layout, o Options) (*Program, error) {
	if err := plan.Validate(g, p); err != nil {
		return nil, err
	}
	compiled := Compile(g, p, l, o)
	if err := Check(g, compiled); err != nil {
		return nil, err
	}
	return compiled, nil
}
