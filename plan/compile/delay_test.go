package compile_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"tensile/graph"
	"tensile/plan"
	"tensile/plan/compile"
	"tensile/plan/program"
	"tensile/plan/proof"
)

// fan returns relus of one input, with a plan that runs one after the other.
func fan(t *testing.T, took ...time.Duration) (*graph.Graph, *plan.Plan) {
	t.Helper()
	b := graph.NewBuilder("fan")
	x := b.Input("x", graph.Anything, graph.Float32, graph.Shape{16})
	y := x
	for range took {
		y = b.Op("f", graph.ReLU, graph.Attrs{}, x)[0]
	}
	b.Output(y)
	g, err := b.Graph()
	if err != nil {
		t.Fatal(err)
	}
	last := len(g.Ops) - 1
	p := &plan.Plan{Graph: g.Digest(), Made: took, Moves: []plan.Move{{Kind: plan.In, After: -1},
		{Kind: plan.Drop, After: last},
		{Kind: plan.Out, Storage: graph.StorageID(last + 1), After: last}}}
	for op := range g.Ops {
		p.Steps = append(p.Steps, plan.Step{Op: graph.OpID(op)})
		p.Moves = append(p.Moves, plan.Move{Kind: plan.Drop, Storage: graph.StorageID(op + 1), After: last})
	}
	return g, p
}

// held compiles a fan in which the first relu's result is copied out after a delay that begins with the end of step 0,
// and returns after which step that is and how long it is held.
func held(t *testing.T, delay time.Duration, made bool, took ...time.Duration) (slot int, hold time.Duration) {
	t.Helper()
	g, p := fan(t, took...)
	if !made {
		p.Made = nil
	}
	p.Moves = append(p.Moves, plan.Move{Kind: plan.Out, Storage: 1, After: 0, Delay: delay})
	plan.Sort(p.Moves)
	l, err := compile.Place(g, p, align)
	if err != nil {
		t.Fatal(err)
	}
	c, err := compile.Prove(g, p, l, compile.Options{})
	if err != nil {
		t.Fatal(err)
	}
	body := c.Program().Body.Commands
	i := slices.IndexFunc(body, func(cmd program.Command) bool { return cmd.Kind == program.Out && cmd.Storage == 1 })
	return body[i].Slot, body[i].Hold
}

// A delay becomes a later trigger and what is left as a hold: none when the delay ends with a step. No hold outlasts
// the plan's iteration, and without latencies there is none.
func TestDelay(t *testing.T) {
	for _, test := range []struct {
		delay time.Duration
		made  bool
		took  []time.Duration
		slot  int
		hold  time.Duration
	}{
		{0, true, []time.Duration{10, 10, 10, 10}, 0, 0},
		{9, true, []time.Duration{10, 10, 10, 10}, 0, 9},
		{10, true, []time.Duration{10, 10, 10, 10}, 1, 0},
		{11, true, []time.Duration{10, 10, 10, 10}, 1, 1},
		{20, true, []time.Duration{10, 10, 10, 10}, 2, 0},
		{30, true, []time.Duration{10, 10, 10, 10}, 3, 0},
		{39, true, []time.Duration{10, 10, 10, 10}, 3, 9},
		{40, true, []time.Duration{10, 10, 10, 10}, 3, 10},
		{time.Hour, true, []time.Duration{10, 10, 10, 10}, 3, 10},
		{math.MaxInt64, true, []time.Duration{10, 10, 10, 10}, 3, 10},
		{time.Hour, false, []time.Duration{10, 10, 10, 10}, 0, 0},
		{math.MaxInt64, true, []time.Duration{0, math.MaxInt64}, 1, 0},
	} {
		if slot, hold := held(t, test.delay, test.made, test.took...); slot != test.slot || hold != test.hold {
			t.Errorf("delay %v of steps %v (known: %v): after %d held for %v, want after %d for %v",
				test.delay, test.took, test.made, slot, hold, test.slot, test.hold)
		}
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
	if err := proof.Validate(g, p); err != nil {
		t.Fatal(err)
	}
	l, err := compile.Place(g, p, align)
	if err != nil {
		t.Fatal(err)
	}
	c := compile.Compile(g, p, l, compile.Options{Poison: true})
	if err := proof.Check(c); err != nil {
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
