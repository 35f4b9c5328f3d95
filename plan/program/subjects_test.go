package program_test

import (
	"testing"

	"tensile/graph"
	"tensile/models/graphtest"
	"tensile/plan"
	"tensile/plan/plantest"
	"tensile/plan/program"
)

// subject is a graph with a plan, its layout and its program.
type subject struct {
	name string
	g    *graph.Graph
	p    *plan.Plan
	l    *program.Placement
	c    *program.Program
}

const align = plantest.Align

func random(t testing.TB, seed uint64, o graphtest.Options) subject {
	t.Helper()
	s := plantest.Random(t, seed, o)
	return subject{s.Name, s.Graph, s.Plan, s.Layout, s.Program}
}
