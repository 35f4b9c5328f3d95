package proof

import (
	"fmt"
	"slices"

	"tensile/graph"
	"tensile/plan"
	"tensile/plan/program"
)

// Proven is a program that may run, of a plan that is valid. Only Prove makes one. The zero value holds no program, and
// what takes a Proven refuses it.
type Proven struct{ program *program.Program }

// Program returns the program, which must not be changed; nil for the zero value.
func (p Proven) Program() *program.Program { return p.program }

// Prove returns the program that compile makes of a plan and its layout, after all checks: the plan is valid, the
// layout has an aligned place within its arena for every residency and scratch, no two uses of the same bytes are
// unordered, and every command finds what it should. The program takes no more of the device than the layout does.
//
// Only the graph is trusted, which must be valid: neither the plan, nor the layout, of which Offsets, Scratch, Arena
// and Align are read, nor compile, which is called at most once, when plan and layout have passed, and which must leave
// the plan as it is. Nobody may change graph, plan or program afterwards. tick is told of every few steps of the work,
// of some nanoseconds each, and may panic: that ends the proof.
func Prove(g *graph.Graph, p *plan.Plan, l *program.Placement, compile func(*program.Placement) *program.Program,
	tick func(steps int)) (Proven, error) {
	if p == nil {
		return Proven{}, fmt.Errorf("the layout has no plan")
	}
	if err := ValidateBy(g, p, tick); err != nil {
		return Proven{}, err
	}
	tick(tableTicks * len(p.Steps))
	placed := *l
	placed.Stays = plan.StaysBy(g, p, tick)
	if len(l.Scratch) == 0 {
		placed.Scratch = make([]graph.Bytes, len(p.Steps))
	}
	if err := checkLayout(g, p, &placed); err != nil {
		return Proven{}, err
	}
	valid := *p
	valid.Steps, valid.Moves, valid.Entry, valid.Made = slices.Clone(p.Steps), slices.Clone(p.Moves),
		slices.Clone(p.Entry), slices.Clone(p.Made)
	arena, align := placed.Arena, placed.Align
	c := compile(&placed)
	if c == nil || c.Graph != g || c.Plan != p || !equalPlans(&valid, p) {
		return Proven{}, fmt.Errorf("program: %w: it was compiled of another plan", ErrPlan)
	}
	if c.Arena != arena || c.Align != align {
		return Proven{}, fmt.Errorf("program: %w: its arena has %d bytes aligned to %d, that of the layout %d bytes "+
			"aligned to %d", ErrBounds, c.Arena, c.Align, arena, align)
	}
	if err := check(c, tick); err != nil {
		return Proven{}, err
	}
	return Proven{c}, nil
}

// equalPlans reports whether two plans of one graph are the same in all that is proven of a plan.
func equalPlans(p, q *plan.Plan) bool {
	return slices.Equal(p.Steps, q.Steps) && slices.Equal(p.Moves, q.Moves) && slices.Equal(p.Entry, q.Entry) &&
		slices.Equal(p.Made, q.Made)
}

// checkLayout reports what of a valid plan has no place in its arena.
func checkLayout(g *graph.Graph, p *plan.Plan, l *program.Placement) error {
	if len(l.Offsets) != len(l.Stays.Residencies) || len(l.Scratch) != len(p.Steps) {
		return fmt.Errorf("the layout has %d offsets for %d residencies and %d of scratch for %d steps",
			len(l.Offsets), len(l.Stays.Residencies), len(l.Scratch), len(p.Steps))
	}
	if l.Align <= 0 || l.Arena < 0 || l.Arena%l.Align != 0 || l.Arena > graph.MaxTotal {
		return fmt.Errorf("the layout has an arena of %d bytes, want a multiple of %d up to %d", l.Arena, l.Align,
			graph.MaxTotal)
	}
	for i, r := range l.Stays.Residencies {
		s := g.Storages[r.Storage]
		if err := checkWithin(l, l.Offsets[i], s.Bytes, s.Name); err != nil {
			return err
		}
	}
	for slot, step := range p.Steps {
		if step.Scratch > 0 {
			if err := checkWithin(l, l.Scratch[slot], step.Scratch, "the scratch of "+g.Ops[step.Op].Name); err != nil {
				return err
			}
		}
	}
	return nil
}

func checkWithin(l *program.Placement, offset, size graph.Bytes, what string) error {
	if offset < 0 || offset%l.Align != 0 || offset > l.Arena-size {
		return fmt.Errorf("the layout has %s of %s at byte %d of an arena of %s, want a multiple of %d within it",
			what, size, offset, l.Arena, l.Align)
	}
	return nil
}

// Divided is a program that may run, in groups that may be held: CheckGroups has accepted them. Only ProveGroups makes
// one. The zero value holds neither.
type Divided struct {
	proven Proven
	groups *program.Groups
}

// Proven returns the program.
func (d Divided) Proven() Proven { return d.proven }

// Groups returns the groups, which must not be changed; nil for the zero value.
func (d Divided) Groups() *program.Groups { return d.groups }

// ProveGroups proves groups of a program by CheckGroups.
func ProveGroups(p Proven, d *program.Groups) (Divided, error) {
	if p.program == nil || d == nil {
		return Divided{}, fmt.Errorf("program: there is none to divide, or there are no groups")
	}
	if err := CheckGroups(p.program, d); err != nil {
		return Divided{}, err
	}
	return Divided{p, d}, nil
}

// Rename is the same program of a job of another name, in another epoch, which no proof depends on; the zero value
// stays what it is.
func (p Proven) Rename(job string, epoch int64) Proven {
	if p.program == nil {
		return Proven{}
	}
	return Proven{p.program.Rename(job, epoch)}
}
