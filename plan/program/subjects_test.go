package program_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"tensile/graph"
	"tensile/graph/autodiff"
	"tensile/graph/cost"
	"tensile/models"
	"tensile/models/randgraph"
	"tensile/plan"
	"tensile/plan/program"
	"tensile/plan/randplan"
	"tensile/scheduler"
	"tensile/scheduler/policies"
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

const align = 64

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

// random returns the subject of a seed; every other one fills what it drops with NaN.
func random(t testing.TB, seed uint64, o randgraph.Options) subject {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 4))
	o.Passes = seed/2%2 == 1
	g := randgraph.New(rng, o)
	scratch := make([]graph.Bytes, len(g.Ops))
	for i := range scratch {
		scratch[i] = max(0, 4*graph.Bytes(rng.IntN(64)-32))
	}
	p := randplan.New(rng, g, scratch)
	l, err := program.Place(g, p, align)
	if err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	return subject{fmt.Sprintf("seed %d", seed), g, p, l, program.Compile(g, p, l, optionsOf(seed)), nil}
}

// optionsOf varies what a program is made with: two of three seeds have a snapshot, with a link that is fast or slow.
func optionsOf(seed uint64) program.Options {
	return program.Options{Poison: seed%2 == 1, Snapshot: seed%3 > 0,
		Durations: program.Durations{Out: cost.Link{Rate: cost.BytesPerSecond(1e6 * (seed % 5))}}}
}

// network returns a model planned by the policy tensile at a share of what it needs without.
func network(t testing.TB, model string, percent int) subject {
	return networkOn(t, "v100", model, 4, percent)
}

// networkOn is network for a device and a batch. At 0 percent it is none-live's plan.
func networkOn(t testing.TB, device, model string, batch, percent int) subject {
	t.Helper()
	g, err := models.Build(model, models.Config{Batch: batch})
	if err != nil {
		t.Fatal(err)
	}
	return planned(t, device, model, g, percent)
}

// replicated is network for each of several replicas.
func replicated(t testing.TB, model string, replicas, percent int) subject {
	t.Helper()
	g, err := models.Build(model, models.Config{Batch: 4})
	if err != nil {
		t.Fatal(err)
	}
	if g, err = autodiff.Replicate(g, replicas); err != nil {
		t.Fatal(err)
	}
	return planned(t, "v100", fmt.Sprintf("%d replicas of %s", replicas, model), g, percent)
}

// planned returns the subject of a graph.
func planned(t testing.TB, device, name string, g *graph.Graph, percent int) subject {
	t.Helper()
	facts, err := cost.Device(device)
	if err != nil {
		t.Fatal(err)
	}
	r := scheduler.Request{Policy: "none-live", Out: facts.Out, In: facts.In, Align: align}
	j := scheduler.Job{Name: name, Graph: g}
	for op := range g.Ops {
		j.Latency = append(j.Latency, facts.Roofline(g.Cost(graph.OpID(op))))
		j.Variants = append(j.Variants, []scheduler.Variant{{Scratch: graph.Bytes(op%3) * 256}})
	}
	r.Jobs = []scheduler.Job{j}
	planned, err := policies.Schedule(r, nil)
	if err != nil {
		t.Fatal(err)
	}
	if percent > 0 {
		r.Policy, r.Budget = "tensile", planned.Arena*graph.Bytes(percent)/100
		if planned, err = policies.Schedule(r, nil); err != nil {
			t.Fatal(err)
		}
	}
	s := planned.Jobs[0]
	c := program.Compile(g, s.Plan, s.Layout, program.Options{Snapshot: true,
		Durations: program.Durations{Out: facts.Out}})
	return subject{fmt.Sprintf("%s at %d%%", name, percent), g, s.Plan, s.Layout, c, nil}
}

// subjects are what mutations are tried on; each passes every check as it is.
func subjects(t testing.TB) []subject {
	all := []subject{network(t, "lenet", 60), network(t, "lenet", 100), network(t, "mlp", 75),
		replicated(t, "lenet", 2, 70)}
	for seed := range uint64(12) {
		all = append(all, random(t, seed, randgraph.Options{}))
	}
	for _, s := range all {
		if err := plan.Validate(s.g, s.p); err != nil {
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
	c := *s.c
	for _, section := range c.Sections() {
		section.Commands, section.Counts = slices.Clone(section.Commands), slices.Clone(section.Counts)
		for i := range section.Commands {
			cmd := &section.Commands[i]
			cmd.Waits, cmd.Inputs, cmd.Outputs = slices.Clone(cmd.Waits), slices.Clone(cmd.Inputs),
				slices.Clone(cmd.Outputs)
		}
	}
	s.c = &c
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
