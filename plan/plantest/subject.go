package plantest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"tensile/graph"
	"tensile/graph/autodiff"
	"tensile/graph/cost"
	"tensile/models"
	"tensile/models/graphtest"
	"tensile/plan"
	"tensile/plan/compile"
	"tensile/plan/program"
	"tensile/plan/randtest"
	"tensile/scheduler"
	"tensile/scheduler/policies"
)

// Subject is a graph with a plan, its layout and its program.
type Subject struct {
	Name    string
	Graph   *graph.Graph
	Plan    *plan.Plan
	Layout  *program.Placement
	Program *program.Program
}

// Align is what the offsets of layouts are multiples of.
const Align = 64

// Random returns the subject of a seed; every other one fills what it drops with NaN.
func Random(t testing.TB, seed uint64, o graphtest.Options) Subject {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 4))
	o.Passes = seed/2%2 == 1
	g := graphtest.New(rng, o)
	scratch := make([]graph.Bytes, len(g.Ops))
	for i := range scratch {
		scratch[i] = max(0, 4*graph.Bytes(rng.IntN(64)-32))
	}
	p := randtest.New(rng, g, scratch)
	l, err := compile.Place(g, p, Align)
	if err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	return Subject{fmt.Sprintf("seed %d", seed), g, p, l, compile.Compile(g, p, l, optionsOf(seed))}
}

// optionsOf varies what a program is made with: two of three seeds have a snapshot, with a link that is fast or slow.
func optionsOf(seed uint64) compile.Options {
	return compile.Options{Poison: seed%2 == 1, Snapshot: seed%3 > 0,
		Durations: program.Durations{Out: cost.Link{Rate: cost.BytesPerSecond(1e6 * (seed % 5))}}}
}

// Network returns a model planned by the policy tensile at a share of what it needs without.
func Network(t testing.TB, model string, percent int) Subject {
	return NetworkOn(t, "v100", model, 4, percent)
}

// NetworkOn is Network for a device and a batch. At 0 percent it is none-live's plan.
func NetworkOn(t testing.TB, device, model string, batch, percent int) Subject {
	t.Helper()
	g, err := models.Build(model, models.Config{Batch: batch})
	if err != nil {
		t.Fatal(err)
	}
	return planned(t, device, model, g, percent)
}

// Replicated is Network for each of several replicas.
func Replicated(t testing.TB, model string, replicas, percent int) Subject {
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
func planned(t testing.TB, device, name string, g *graph.Graph, percent int) Subject {
	t.Helper()
	facts, err := cost.Device(device)
	if err != nil {
		t.Fatal(err)
	}
	r := scheduler.Request{Policy: "none-live", Out: facts.Out, In: facts.In, Align: Align}
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
	c := compile.Compile(g, s.Plan, s.Layout, compile.Options{Snapshot: true,
		Durations: program.Durations{Out: facts.Out}})
	return Subject{fmt.Sprintf("%s at %d%%", name, percent), g, s.Plan, s.Layout, c}
}

// Durations returns random times of so many steps, and of random links.
func Durations(steps int, rng *rand.Rand) program.Durations {
	link := func() cost.Link {
		return cost.Link{Rate: cost.BytesPerSecond(1e6 * (1 + rng.Float64()*200)),
			Latency: time.Duration(rng.IntN(3000))}
	}
	d := program.Durations{Out: link(), In: link(), Host: link()}
	for range steps {
		d.Steps = append(d.Steps, time.Duration(rng.IntN(10000)))
	}
	return d
}

// Subjects returns small networks that swap, one of them of two replicas, and random subjects.
func Subjects(t testing.TB) []Subject {
	all := []Subject{Network(t, "lenet", 60), Network(t, "lenet", 100), Network(t, "mlp", 75),
		Replicated(t, "lenet", 2, 70)}
	for seed := range uint64(12) {
		all = append(all, Random(t, seed, graphtest.Options{}))
	}
	return all
}

// Clone returns a copy of a program that may be changed, the operands and waits of commands included.
func Clone(p *program.Program) *program.Program {
	c := *p
	for _, section := range c.Sections() {
		section.Commands, section.Counts = slices.Clone(section.Commands), slices.Clone(section.Counts)
		for i := range section.Commands {
			cmd := &section.Commands[i]
			cmd.Waits, cmd.Inputs, cmd.Outputs = slices.Clone(cmd.Waits), slices.Clone(cmd.Inputs),
				slices.Clone(cmd.Outputs)
		}
	}
	return &c
}
