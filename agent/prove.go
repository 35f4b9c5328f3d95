package agent

import (
	"fmt"

	"tensile/graph"
	"tensile/internal/invariants"
	"tensile/plan"
	"tensile/program"
	"tensile/wire"
)

// Proven is a program that may run: only Prove makes one.
type Proven struct{ program *program.Program }

// Program returns it.
func (p *Proven) Program() *program.Program { return p.program }

// Prove validates the layout of a job's epoch, which is not trusted in anything, and returns its checked program.
// Offsets are multiples of align.
func Prove(g *graph.Graph, job string, epoch int64, l *wire.Layout, align graph.Bytes) (*Proven, error) {
	switch p := l.Plan; {
	case p == nil:
		return nil, fmt.Errorf("the layout has no plan")
	case p.Job != job || p.Epoch != epoch:
		return nil, fmt.Errorf("the layout is that of job %s, epoch %d", p.Job, p.Epoch)
	}
	if err := plan.Validate(g, l.Plan); err != nil {
		return nil, err
	}
	layout, err := place(g, l, align)
	if err != nil {
		return nil, err
	}
	compiled := program.Compile(g, l.Plan, layout, program.Options{Poison: invariants.Enabled})
	if err := program.Check(g, compiled); err != nil {
		return nil, err
	}
	return &Proven{compiled}, nil
}

// place takes the offsets of a valid plan, if each is that of a range of the arena.
func place(g *graph.Graph, l *wire.Layout, align graph.Bytes) (*program.Layout, error) {
	stays := plan.StaysOf(g, l.Plan)
	out := &program.Layout{Stays: stays, Offsets: l.Offsets, Scratch: l.Scratch, Arena: l.Arena}
	if len(l.Scratch) == 0 {
		out.Scratch = make([]graph.Bytes, len(l.Plan.Steps))
	}
	if len(out.Offsets) != len(stays.Residencies) || len(out.Scratch) != len(l.Plan.Steps) {
		return nil, fmt.Errorf("the layout has %d offsets for %d residencies and %d of scratch for %d steps",
			len(out.Offsets), len(stays.Residencies), len(out.Scratch), len(l.Plan.Steps))
	}
	if l.Arena < 0 || l.Arena%align != 0 {
		return nil, fmt.Errorf("the layout has an arena of %d bytes, no multiple of %d", l.Arena, align)
	}
	within := func(offset, size graph.Bytes, what string) error {
		if offset < 0 || offset%align != 0 || size > l.Arena || offset > l.Arena-size {
			return fmt.Errorf("the layout has %s of %s at byte %d of an arena of %s, want a multiple of %d within it",
				what, size, offset, l.Arena, align)
		}
		return nil
	}
	for i, r := range stays.Residencies {
		s := g.Storages[r.Storage]
		if err := within(out.Offsets[i], s.Bytes, s.Name); err != nil {
			return nil, err
		}
	}
	for slot, step := range l.Plan.Steps {
		if step.Scratch > 0 {
			if err := within(out.Scratch[slot], step.Scratch, "the scratch of "+g.Ops[step.Op].Name); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}
