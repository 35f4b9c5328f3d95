package agent

import (
	"fmt"

	"tensile/graph"
	"tensile/internal/invariants"
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
	layout := program.Layout{Offsets: l.Offsets, Scratch: l.Scratch, Arena: l.Arena, Align: align}
	proven, err := program.Prove(g, l.Plan, &layout, program.Options{Poison: invariants.Enabled})
	if err != nil {
		return nil, err
	}
	return &Proven{proven}, nil
}
