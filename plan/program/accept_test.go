package program_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"tensile/graph"
	"tensile/internal/long"
	"tensile/models/randgraph"
	"tensile/plan"
	"tensile/plan/program"
)

// TestWhatValidateAcceptsChecks changes plans at random, most often for the worse. Validate rejects them, or their
// programs pass Check: between them nothing is lost.
func TestWhatValidateAcceptsChecks(t *testing.T) {
	seeds := long.Rounds(100, 1000)
	accepted, rejected := 0, 0
	for seed := range seeds {
		s := random(t, seed, randgraph.Options{Ops: 16})
		rng := rand.New(rand.NewPCG(seed, 7))
		for change := range 12 {
			bad := s.withPlan()
			for range 1 + change/4 {
				bad.change(rng)
			}
			plan.Sort(bad.p.Moves)
			if plan.Validate(bad.g, bad.p) != nil {
				rejected++
				continue
			}
			accepted++
			l, err := program.Place(bad.g, bad.p, align)
			if err != nil {
				t.Fatalf("%s: %v\n%s", s.name, err, bad.p.Text(s.g))
			}
			for _, poison := range []bool{false, true} {
				if _, err := program.Check(program.Compile(bad.g, bad.p, l,
					program.Options{Poison: poison})); err != nil {
					t.Fatalf("%s, poison %v: %v\n%s", s.name, poison, err, bad.p.Text(s.g))
				}
			}
		}
	}
	t.Logf("%d plans accepted, %d rejected", accepted, rejected)
	if accepted < int(seeds) || rejected < int(seeds) {
		t.Errorf("%d plans accepted, %d rejected of %d", accepted, rejected, 12*seeds)
	}
}

// change makes one small change to the plan.
func (s subject) change(rng *rand.Rand) {
	p := s.p
	slot := rng.IntN(len(p.Steps))
	switch kind := rng.IntN(7); {
	case kind == 0 && slot > 0:
		p.Steps[slot-1], p.Steps[slot] = p.Steps[slot], p.Steps[slot-1]
	case kind == 1:
		insertStep(p, slot, p.Steps[rng.IntN(len(p.Steps))])
	case kind == 2 && len(p.Entry) > 0:
		i := rng.IntN(len(p.Entry))
		p.Entry = slices.Delete(p.Entry, i, i+1)
	case len(p.Moves) == 0:
	case kind == 3:
		i := rng.IntN(len(p.Moves))
		p.Moves = slices.Delete(p.Moves, i, i+1)
	case kind == 4:
		m := p.Moves[rng.IntN(len(p.Moves))]
		m.Storage = graph.StorageID(rng.IntN(len(s.g.Storages)))
		p.Moves = append(p.Moves, m)
	case kind == 5:
		if m := &p.Moves[rng.IntN(len(p.Moves))]; m.Kind != plan.Drop {
			m.Delay = time.Duration(rng.IntN(50000))
		}
	default:
		m := &p.Moves[rng.IntN(len(p.Moves))]
		m.After = min(len(p.Steps)-1, max(-1, m.After+rng.IntN(7)-3))
	}
}

// TestDelayedInStaysBeforeDrop shows that a delay longer than the stay that it delays does not carry a copy in past the
// drop at the end of that stay.
func TestDelayedInStaysBeforeDrop(t *testing.T) {
	b := graph.NewBuilder("chain")
	x := b.Input("x", graph.Anything, graph.Float32, graph.Shape{16})
	y := x
	for _, name := range []string{"f0", "f1", "f2", "f3"} {
		y = b.Op(name, graph.ReLU, graph.Attrs{}, y)[0]
	}
	b.Output(y)
	g, err := b.Graph()
	if err != nil {
		t.Fatal(err)
	}
	p := &plan.Plan{Graph: g.Digest(), Made: slices.Repeat([]time.Duration{1000}, 4)}
	last := len(g.Ops) - 1
	p.Moves = []plan.Move{
		{Kind: plan.In, Storage: 0, After: -1}, {Kind: plan.Drop, Storage: 0, After: 0},
		{Kind: plan.In, Storage: 0, After: 0, Delay: 10000}, {Kind: plan.Drop, Storage: 0, After: 2},
		{Kind: plan.Out, Storage: graph.StorageID(last + 1), After: last},
	}
	for op := range g.Ops {
		p.Steps = append(p.Steps, plan.Step{Op: graph.OpID(op)})
		p.Moves = append(p.Moves, plan.Move{Kind: plan.Drop, Storage: graph.StorageID(op + 1), After: last})
	}
	plan.Sort(p.Moves)
	if err := plan.Validate(g, p); err != nil {
		t.Fatal(err)
	}
	l, err := program.Place(g, p, align)
	if err != nil {
		t.Fatal(err)
	}
	c := program.Compile(g, p, l, program.Options{Poison: true})
	if _, err := program.Check(c); err != nil {
		t.Fatal(err)
	}
	var got []int
	for _, cmd := range c.Body.Commands {
		if cmd.Kind == program.In {
			got = append(got, cmd.Slot)
		}
	}
	if want := []int{-1, 1}; !slices.Equal(got, want) {
		t.Errorf("x comes in after %v, want %v\n%s", got, want, c.Text())
	}
}
