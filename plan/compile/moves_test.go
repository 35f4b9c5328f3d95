package compile_test

import (
	"testing"

	"tensile/graph"
	"tensile/internal/long"
	"tensile/models/graphtest"
	"tensile/plan"
	"tensile/plan/plantest"
	"tensile/plan/program"
)

// TestMovesFollowTheirSteps shows that a copy begins after the step that its move names has ended, a step after the
// synchronous copies that follow the step before it, and a step after one that joins after all copies before that. It
// looks for paths through two bodies.
func TestMovesFollowTheirSteps(t *testing.T) {
	seeds := long.Rounds(50, 300)
	syncs, joins := 0, 0
	for seed := range seeds {
		s := random(t, seed, graphtest.Options{Ops: 16})
		p := *s.c
		p.Prologue, p.Epilogue = program.Section{}, program.Section{}
		nodes := plantest.Unroll(s.g, &p, []*program.Section{&p.Body, &p.Body})
		n := len(p.Body.Commands)
		before := func(i, j int) bool {
			reached := make([]bool, len(nodes))
			plantest.Reach(nodes, j, reached)
			return reached[i]
		}
		kernels := make([]int, len(s.p.Steps)) // index in the body
		copies := map[program.Kind]map[graph.StorageID][]int{program.Out: {}, program.In: {}}
		for i, cmd := range p.Body.Commands {
			switch cmd.Kind {
			case program.Kernel, program.Reduce:
				kernels[cmd.Slot] = i
			case program.Out, program.In:
				copies[cmd.Kind][cmd.Storage] = append(copies[cmd.Kind][cmd.Storage], i)
			}
		}
		for _, m := range s.p.Moves {
			if m.Kind == plan.Drop {
				continue
			}
			kind := map[plan.MoveKind]program.Kind{plan.Out: program.Out, plan.In: program.In}[m.Kind]
			list := copies[kind][m.Storage]
			if len(list) == 0 {
				t.Fatalf("%s: no command for %s of %s after %d", s.name, m.Kind, s.g.Storages[m.Storage].Name, m.After)
			}
			i := list[0]
			copies[kind][m.Storage] = list[1:]
			trigger := kernels[len(kernels)-1] // of the body before
			if m.After >= 0 {
				trigger = n + kernels[m.After]
			}
			if !before(trigger, n+i) {
				t.Fatalf("%s: %s of %s does not wait for step %d\n%s", s.name, m.Kind, s.g.Storages[m.Storage].Name,
					m.After, s.c.Text())
			}
			if slot := p.Body.Commands[i].Slot; m.Sync && slot+1 < len(kernels) {
				syncs++
				if !before(n+i, n+kernels[slot+1]) {
					t.Fatalf("%s: step %d does not wait for the synchronous %s of %s", s.name, slot+1, m.Kind,
						s.g.Storages[m.Storage].Name)
				}
			}
		}
		for slot, step := range s.p.Steps {
			if !step.Join {
				continue
			}
			joins++
			next := n + kernels[(slot+1)%len(kernels)]
			from := n
			if slot == len(kernels)-1 {
				from = 0 // the next step is of the next body
			}
			for i, cmd := range p.Body.Commands[:kernels[slot]] {
				if (cmd.Kind == program.Out || cmd.Kind == program.In) && !before(from+i, next) {
					t.Fatalf("%s: step %d joins, and the next one does not wait for command %d", s.name, slot, i)
				}
			}
		}
		for kind, left := range copies {
			for storage, list := range left {
				if len(list) > 0 {
					t.Fatalf("%s: %d commands %s of %s without a move", s.name, len(list), kind,
						s.g.Storages[storage].Name)
				}
			}
		}
	}
	if syncs < int(seeds) || joins < int(seeds) {
		t.Errorf("%d synchronous copies and %d steps that join in %d plans", syncs, joins, seeds)
	}
}
