package devicetest

import (
	"slices"
	"testing"

	"tensile/device"
	"tensile/graph"
	"tensile/plan"
	"tensile/plan/compile"
	"tensile/plan/proof"
)

// KeepAll plans an iteration without swaps: persistent storages stay, inputs come in before slot 0, outputs go out
// after the op that makes their last version, and everything that does not persist is dropped after the last slot.
func KeepAll(g *graph.Graph) *plan.Plan {
	p := empty(g, "none-all")
	last := g.LastVersions()
	end := len(g.Ops) - 1
	for _, s := range g.Storages {
		switch {
		case s.Role.Persistent():
			p.Entry = append(p.Entry, s.ID)
			continue
		case s.Role == graph.Input:
			p.Moves = append(p.Moves, plan.Move{Kind: plan.In, Storage: s.ID, After: -1})
		}
		p.Moves = append(p.Moves, plan.Move{Kind: plan.Drop, Storage: s.ID, After: end})
	}
	for slot, step := range p.Steps {
		for _, w := range g.Writes(step.Op) {
			if g.Storages[w.Storage].Role == graph.Output && w.Number == last[w.Storage] {
				p.Moves = append(p.Moves, plan.Move{Kind: plan.Out, Storage: w.Storage, After: slot})
			}
		}
	}
	plan.Sort(p.Moves)
	return p
}

// Freed plans an iteration as KeepAll does, but that what does not persist is dropped after its last use.
func Freed(g *graph.Graph) *plan.Plan {
	p := KeepAll(g)
	p.Policy = "none-live"
	last := make([]int, len(g.Storages))
	for slot, step := range p.Steps {
		for _, r := range g.Reads(step.Op) {
			last[r.Storage] = slot
		}
		for _, w := range g.Writes(step.Op) {
			last[w.Storage] = slot
		}
	}
	for i := range p.Moves {
		if m := &p.Moves[i]; m.Kind == plan.Drop {
			m.After = last[m.Storage]
		}
	}
	plan.Sort(p.Moves)
	return p
}

// Swapped plans Tiny with the least memory that swaps give: w2 is not on the device at the boundary and comes in twice,
// the activations h and r and the input x are away in between, and all else is dropped after its last use.
func Swapped(g *graph.Graph) *plan.Plan {
	p := empty(g, "swapped")
	m := &mover{g: g, p: p}
	for _, name := range []string{"w1", "b1", "w2.m"} {
		p.Entry = append(p.Entry, m.storage(name))
	}
	m.moveIn("x", "").drop("x", "h").moveIn("x", "dr").drop("x", "dw1")
	m.moveIn("w2", "h").drop("w2", "z").moveIn("w2", "dz").moveOut("w2", "momentum w2").drop("w2", "momentum w2")
	m.moveOut("h", "h").drop("h", "r").moveIn("h", "dw2").drop("h", "dh")
	m.moveOut("r", "r").drop("r", "z").moveIn("r", "loss").drop("r", "dh")
	m.moveIn("labels", "r").drop("labels", "dz")
	m.moveOut("loss.0", "loss").drop("loss.0", "loss")
	for _, d := range [][2]string{{"z", "loss"}, {"loss.1", "dz"}, {"dz", "dr"}, {"dr", "dh"}, {"dh", "db1"},
		{"dw2", "momentum w2"}, {"dw1", "sgd w1"}, {"db1", "sgd b1"}} {
		m.drop(d[0], d[1])
	}
	plan.Sort(p.Moves)
	return p
}

// empty is a plan that runs every op once and moves nothing.
func empty(g *graph.Graph, policy string) *plan.Plan {
	p := &plan.Plan{Job: g.Name, Policy: policy, Graph: g.Digest(), Passes: g.Passes,
		Steps: make([]plan.Step, len(g.Ops))}
	for op := range g.Ops {
		p.Steps[op].Op = graph.OpID(op)
	}
	return p
}

// mover writes moves by name; an empty op stands for the end of the previous iteration.
type mover struct {
	g *graph.Graph
	p *plan.Plan
}

func (m *mover) storage(name string) graph.StorageID {
	return graph.StorageID(slices.IndexFunc(m.g.Storages, func(s graph.Storage) bool { return s.Name == name }))
}

func (m *mover) move(kind plan.MoveKind, storage, after string) *mover {
	op := slices.IndexFunc(m.g.Ops, func(o graph.Op) bool { return o.Name == after })
	m.p.Moves = append(m.p.Moves, plan.Move{Kind: kind, Storage: m.storage(storage), After: op})
	return m
}

func (m *mover) moveIn(storage, after string) *mover  { return m.move(plan.In, storage, after) }
func (m *mover) moveOut(storage, after string) *mover { return m.move(plan.Out, storage, after) }
func (m *mover) drop(storage, after string) *mover    { return m.move(plan.Drop, storage, after) }

// Build turns a plan into a proven program for a device, with the scratch of the steps' variants. It fails the test
// if any of that fails, and leaves the plan as it is.
func Build(t testing.TB, d device.Device, g *graph.Graph, p *plan.Plan, o compile.Options) proof.Proven {
	t.Helper()
	fitted := *p
	fitted.Steps = slices.Clone(p.Steps)
	for i := range fitted.Steps {
		step := &fitted.Steps[i]
		v, ok := d.Variants(g, step.Op).Find(step.Variant)
		if !ok {
			t.Fatalf("%s has no variant %q of %s", d.Name(), step.Variant, g.Ops[step.Op].Name)
		}
		step.Scratch = max(step.Scratch, v.Scratch)
	}
	if err := proof.Validate(g, &fitted); err != nil {
		t.Fatalf("%v\n%s", err, fitted.Text(g))
	}
	layout, err := compile.Place(g, &fitted, d.Align())
	if err != nil {
		t.Fatalf("%v\n%s", err, fitted.Text(g))
	}
	proven, err := compile.Prove(g, &fitted, layout, o)
	if err != nil {
		t.Fatalf("%v\n%s%s", err, fitted.Text(g), compile.Compile(g, &fitted, layout, o).Text())
	}
	return proven
}
