package compile_test

import (
	"testing"

	"tensile/graph"
	"tensile/models/graphtest"
	"tensile/plan"
	"tensile/plan/plantest"
	"tensile/plan/program"
	"tensile/plan/proof"
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

// The numbers that Compile gives to streams.
const (
	onCompute = program.Stream(program.Compute)
	onCopyIn  = program.Stream(program.CopyIn)
	onHost    = program.Stream(program.Host)
	onEntry   = program.Stream(program.Network)
	streams   = onEntry + 2 // the last is of replicas alone
)

func random(t testing.TB, seed uint64, o graphtest.Options) subject {
	t.Helper()
	return subjectOf(plantest.Random(t, seed, o))
}

func network(t testing.TB, model string, percent int) subject {
	t.Helper()
	return subjectOf(plantest.Network(t, model, percent))
}

// subjects are small networks and random subjects.
func subjects(t testing.TB) (all []subject) {
	for _, s := range plantest.Subjects(t) {
		all = append(all, subjectOf(s))
	}
	return all
}

func subjectOf(s plantest.Subject) subject {
	return subject{s.Name, s.Graph, s.Plan, s.Layout, s.Program}
}

func check(s subject) error {
	return proof.Check(s.c)
}

// nth returns the index of the n-th command of a lane of the body, or -1.
func (s subject) nth(l program.Stream, n int) int {
	for i, c := range s.c.Body.Commands {
		if c.Stream == l {
			if n--; n == 0 {
				return i
			}
		}
	}
	return -1
}
