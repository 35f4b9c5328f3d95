package devicetest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"tensile/device"
	"tensile/graph"
	"tensile/plan/compile"
	"tensile/plan/proof"
)

// Run checks that what open makes behaves as package device says. Each check opens a device of its own and closes it.
func Run(t *testing.T, open func(t *testing.T) device.Device) {
	checks := []struct {
		name  string
		check func(c *crew)
	}{
		{"facts", facts},
		{"variants", variants},
		{"order", order},
		{"drain", drain},
		{"parts", parts},
		{"pages", holds},
		{"jobs", jobs},
		{"memory", memory},
		{"hold", hold},
		{"wake", wake},
		{"cancel", cancel},
		{"close idle", closeIdle},
		{"results", results},
		{"deliveries", deliveries},
		{"bits", bits},
		{"switch", switchPlans},
		{"snapshots", snapshots},
		{"graphs", changeGraphs},
		{"numbers", numbers},
	}
	for _, check := range checks {
		t.Run(check.name, func(t *testing.T) {
			c := &crew{t: t, d: open(t)}
			defer c.close()
			check.check(c)
		})
	}
}

// shuffled returns a random plan's program, whose steps take any of the variants that have the bits of the first.
func shuffled(c *crew, g *graph.Graph, seed uint64, o compile.Options) proof.Proven {
	c.t.Helper()
	p, r := RandomPlan(rand.New(rand.NewPCG(seed, 1)), g), rand.New(rand.NewPCG(seed, 2))
	for i := range p.Steps {
		all := c.d.Variants(g, p.Steps[i].Op)
		if v := all[r.IntN(len(all))]; v.Bits == all[0].Bits {
			p.Steps[i].Variant = v.Name
		}
	}
	return Build(c.t, c.d, g, p, o)
}

func facts(c *crew) {
	if c.d.Name() == "" || c.d.Identity() == "" {
		c.t.Error("no name")
	}
	if align := c.d.Align(); align <= 0 || align&(align-1) != 0 || align%graph.ElementBytes != 0 {
		c.t.Errorf("offsets are aligned to %d: not a power of two of whole elements", align)
	}
	if f := c.d.Facts(); f.Compute <= 0 || f.Bandwidth <= 0 {
		c.t.Errorf("no rates to plan with: %+v", f)
	}
}

func variants(c *crew) {
	for _, g := range []*graph.Graph{Tiny(), Zoo()} {
		for _, op := range g.Ops {
			list := c.d.Variants(g, op.ID)
			if len(list) == 0 {
				c.t.Errorf("%s has no variant", op.Name)
				continue
			}
			if first, ok := list.Find(""); !ok || first != list[0] {
				c.t.Errorf("the default of %s is %+v, want %+v", op.Name, first, list[0])
			}
			for i, v := range list {
				if found, ok := list.Find(v.Name); !ok || found != list[i] {
					c.t.Errorf("variant %d of %s, %q, is found as %+v", i, op.Name, v.Name, found)
				}
				if v.Name == "" || v.Bits == "" || v.Scratch < 0 {
					c.t.Errorf("variant %d of %s: %+v", i, op.Name, v)
				}
			}
			if _, ok := list.Find("no such variant"); ok {
				c.t.Errorf("%s has a variant of any name", op.Name)
			}
		}
	}
}

// order runs several bodies in a row; wait checks lanes and waits.
func order(c *crew) {
	g := Zoo()
	for seed := range uint64(6) {
		s := c.open(g)
		p := s.load(shuffled(c, g, seed, compile.Options{Poison: seed%2 == 1}))
		s.train(p, 0, 4)
		c.wait()
		s.leave()
	}
}

// drain issues the same body with and without drains between, and from iteration to iteration only when all has ended.
func drain(c *crew) {
	g := Tiny()
	s := c.open(g)
	p := s.load(Build(c.t, c.d, g, Swapped(g), compile.Options{}))
	s.issue(p, &p.Prologue, 0, true)
	for i, drained := range []bool{true, true, false, false, true} {
		s.issue(p, &p.Body, i, drained)
	}
	c.wait()
	s.issue(p, &p.Body, 5, false)
	c.wait()
	s.issue(p, &p.Epilogue, 6, true)
	c.wait()
}

// jobs runs jobs of different graphs and lengths side by side.
func jobs(c *crew) {
	for i, g := range []*graph.Graph{Tiny(), Zoo(), Tiny()} {
		s := c.open(g)
		p := s.load(shuffled(c, g, uint64(i), compile.Options{}))
		s.train(p, 0, 2+i)
	}
	c.wait()
	for i, s := range c.seats {
		if len(s.events) == 0 {
			c.t.Errorf("no events of job %d", i)
		}
	}
}

// memory runs two programs after one another, each in an arena of its own size.
func memory(c *crew) {
	g := Tiny()
	s := c.open(g)
	from := 0
	keep, swapped := Build(c.t, c.d, g, KeepAll(g), compile.Options{}), Build(c.t, c.d, g, Swapped(g),
		compile.Options{})
	for _, proven := range []proof.Proven{keep, swapped, shuffled(c, g, 1, compile.Options{Poison: true})} {
		p := s.load(proven)
		s.issue(p, &p.Prologue, from, true)
		c.wait()
		if got, want := int64(s.Touched()), reach(p, &p.Prologue); got != want {
			c.t.Errorf("the prologue touched bytes up to %d, want %d", got, want)
		}
		s.issue(p, &p.Body, from, true)
		s.issue(p, &p.Epilogue, from+1, true)
		c.wait()
		if got, want := int64(s.Touched()), reach(p, &p.Prologue, &p.Body, &p.Epilogue); got != want ||
			got > int64(p.Arena) {
			c.t.Errorf("touched bytes up to %d, want %d, in an arena of %d", got, want, p.Arena)
		}
		from++
	}
}

// hold pauses copies for an hour for which the compute lane waits at once: directly, and through another copy.
func hold(c *crew) {
	g := Tiny()
	plan := Swapped(g)
	plan.Made = slices.Repeat([]time.Duration{2 * time.Hour}, len(plan.Steps)) // else the pauses would be cut
	for i, m := range plan.Moves {
		if name := g.Storages[m.Storage].Name; m.Kind != "drop" && (name == "h" || name == "r") {
			plan.Moves[i].Delay = time.Hour
		}
	}
	s := c.open(g)
	p := s.load(Build(c.t, c.d, g, plan, compile.Options{}))
	s.train(p, 0, 3)
	c.wait()
	if took := s.makespan(); took >= time.Hour {
		c.t.Errorf("three iterations took %v", took)
	}
	held := 0
	for _, command := range p.Body.Commands {
		if command.Hold > 0 {
			held++
		}
	}
	if held != 4 {
		panic(fmt.Sprintf("devicetest: %d held copies", held))
	}
}
