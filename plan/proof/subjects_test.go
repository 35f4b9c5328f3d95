package proof_test

import (
	"slices"
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
	d    *program.Groups // of the program; nil but for mistakes in groups
}

const align = plantest.Align

// The numbers that Compile gives to streams and to the host region.
const (
	onCompute  = program.Stream(program.Compute)
	onCopyOut  = program.Stream(program.CopyOut)
	onCopyIn   = program.Stream(program.CopyIn)
	onHost     = program.Stream(program.Host)
	onEntry    = program.Stream(program.Network)
	onNetwork  = onEntry + 1 // of replicas alone
	streams    = onNetwork + 1
	hostRegion = program.Region(program.HostMemory)
)

// subjectOf returns a subject without mistakes.
func subjectOf(s plantest.Subject) subject {
	return subject{s.Name, s.Graph, s.Plan, s.Layout, s.Program, nil}
}

func random(t testing.TB, seed uint64, o graphtest.Options) subject {
	t.Helper()
	return subjectOf(plantest.Random(t, seed, o))
}

func network(t testing.TB, model string, percent int) subject {
	t.Helper()
	return subjectOf(plantest.Network(t, model, percent))
}

// subjects are what mutations are tried on; each passes every check as it is.
func subjects(t testing.TB) []subject {
	var all []subject
	for _, s := range plantest.Subjects(t) {
		all = append(all, subjectOf(s))
	}
	for _, s := range all {
		if err := proof.Validate(s.g, s.p); err != nil {
			t.Fatalf("%s: %v", s.name, err)
		}
		if err := check(s); err != nil {
			t.Fatalf("%s: %v", s.name, err)
		}
	}
	return all
}

// withPlan returns a copy whose plan may be changed.
func (s subject) withPlan() subject {
	p := *s.p
	p.Steps, p.Moves, p.Entry, p.Made = slices.Clone(p.Steps), slices.Clone(p.Moves), slices.Clone(p.Entry),
		slices.Clone(p.Made)
	s.p = &p
	return s
}

// withProgram returns a copy whose program may be changed, the operands and waits of commands included.
func (s subject) withProgram() subject {
	s.c = plantest.Clone(s.c)
	return s
}

// withLayout returns a copy whose offsets may be changed before it is compiled again.
func (s subject) withLayout() subject {
	l := *s.l
	l.Offsets, l.Scratch = slices.Clone(l.Offsets), slices.Clone(l.Scratch)
	s.l = &l
	return s
}

// withGraph returns a copy whose storages may be changed.
func (s subject) withGraph() subject {
	g := *s.g
	g.Storages = slices.Clone(g.Storages)
	s.g = &g
	return s
}

// touches reports whether a step reads or makes a storage.
func (s subject) touches(slot int, storage graph.StorageID) bool {
	step := s.p.Steps[slot]
	for _, r := range s.g.Reads(step.Op) {
		if r.Storage == storage {
			return true
		}
	}
	return s.writes(slot, storage)
}

// writes reports whether a step makes a version of a storage.
func (s subject) writes(slot int, storage graph.StorageID) bool {
	step := s.p.Steps[slot]
	for i, w := range s.g.Writes(step.Op) {
		if w.Storage == storage && step.Want.Has(i) {
			return true
		}
	}
	return false
}

// proven returns the proof of the subject's program.
func (s subject) proven(t testing.TB) proof.Proven {
	t.Helper()
	p, err := proof.Prove(s.g, s.p, s.l, func(*program.Placement) *program.Program { return s.c }, func(int) {})
	if err != nil {
		t.Fatalf("%s: %v", s.name, err)
	}
	return p
}
