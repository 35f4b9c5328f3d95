package randtest

import (
	"tensile/plan/compile"
	"tensile/plan/program"
	"tensile/plan/proof"
)

// Prove proves a program that a test has changed, by a layout that its plan has.
func Prove(p *program.Program) (proof.Proven, error) {
	l, err := compile.Place(p.Graph, p.Plan, p.Align)
	if err != nil {
		return proof.Proven{}, err
	}
	l.Arena = p.Arena
	return proof.Prove(p.Graph, p.Plan, l, func(*program.Placement) *program.Program { return p }, func(int) {})
}
