package program_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"tensile/graph"
	"tensile/graph/cost"
	"tensile/plan"
	"tensile/plan/compile"
	"tensile/plan/program"
)

// pile is a graph with an early and a late update whose results are copied out in every iteration, with its plan.
func pile(t *testing.T) subject {
	t.Helper()
	shape := graph.Shape{64}
	b := graph.NewBuilder("pile")
	x := b.Input("x", graph.Anything, graph.Float32, shape)
	early := b.Persistent("early", graph.State, shape, graph.Init{Kind: graph.InitZero})
	late := b.Persistent("late", graph.State, shape, graph.Init{Kind: graph.InitZero})
	y := b.Op("y", graph.ReLU, graph.Attrs{}, x)[0]
	b.Output(y)
	b.Op("update early", graph.Accumulate, graph.Attrs{}, early, x)
	for _, name := range []string{"f", "g", "h"} {
		y = b.Op(name, graph.ReLU, graph.Attrs{}, y)[0]
	}
	b.Op("update late", graph.Accumulate, graph.Attrs{}, late, y)
	g, err := b.Graph()
	if err != nil {
		t.Fatal(err)
	}
	p := &plan.Plan{Graph: g.Digest(), Entry: []graph.StorageID{1, 2}, Moves: []plan.Move{
		{Kind: plan.In, Storage: 0, After: -1}, {Kind: plan.Out, Storage: 1, After: 1}, {Kind: plan.Out, Storage: 2,
			After: 5},
		{Kind: plan.Out, Storage: 3, After: 0}, {Kind: plan.Drop, Storage: 0, After: 5}}}
	for op := range g.Ops {
		p.Steps = append(p.Steps, plan.Step{Op: graph.OpID(op)})
	}
	for s := graph.StorageID(3); s < 7; s++ {
		p.Moves = append(p.Moves, plan.Move{Kind: plan.Drop, Storage: s, After: 5})
	}
	plan.Sort(p.Moves)
	l, err := compile.Place(g, p, align)
	if err != nil {
		t.Fatal(err)
	}
	c, err := compile.Prove(g, p, l, compile.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return subject{"pile", g, p, l, c.Program()}
}

// Where copies pile up, the second body is not yet like later ones: its first update waits for one copy, that of the
// third for all copies of a body. Time waits for the steady state.
func TestTimeWhileCopiesPileUp(t *testing.T) {
	s := pile(t)
	early := 0
	for seed := range uint64(500) {
		rng := rand.New(rand.NewPCG(seed, 8))
		d := program.Durations{In: cost.Link{Latency: time.Duration(rng.IntN(2000))},
			Out: cost.Link{Latency: time.Duration(rng.IntN(30000))}}
		for range s.p.Steps {
			d.Steps = append(d.Steps, time.Duration(rng.IntN(20000)))
		}
		const bodies = 32
		ends := longest(s, d, bodies)
		want := ends[bodies-1] - ends[bodies-2]
		if got := program.Time(s.c, d).Iteration; got != want {
			t.Errorf("seed %d: iteration %v, the last of %d bodies took %v", seed, got, bodies, want)
		}
		if ends[1]-ends[0] != want {
			early++
		}
	}
	if t.Logf("in %d of 500 runs the second body is not like later ones", early); early < 50 {
		t.Errorf("in %d of 500 runs the second body is not like later ones", early)
	}
}
