package peak_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tensile/device/devicetest"
	"tensile/graph"
	"tensile/peak"
	"tensile/plan"
	"tensile/plan/proof"
)

// slow walks the plan step by step and notes, per slot, who is on the device while the step runs.
func slow(g *graph.Graph, p *plan.Plan) (holders [][]graph.StorageID, bytes []graph.Bytes) {
	on := map[graph.StorageID]bool{}
	for _, s := range p.Entry {
		on[s] = true
	}
	move := func(after int) {
		for _, kind := range []plan.MoveKind{plan.Drop, plan.In} {
			for _, m := range p.Moves {
				if m.After == after && m.Kind == kind {
					on[m.Storage] = kind == plan.In
				}
			}
		}
	}
	move(-1)
	for slot, step := range p.Steps {
		for i, t := range g.Ops[step.Op].Outputs {
			if step.Want.Has(i) {
				on[g.Tensors[t].Storage] = true
			}
		}
		var here []graph.StorageID
		sum := step.Scratch
		for _, s := range g.Storages {
			if on[s.ID] {
				here = append(here, s.ID)
				sum += s.Bytes
			}
		}
		holders, bytes = append(holders, here), append(bytes, sum)
		move(slot)
	}
	return holders, bytes
}

func TestAgainstOracle(t *testing.T) {
	later := 0 // plans whose peak is not in slot 0
	for _, g := range []*graph.Graph{devicetest.Tiny(), devicetest.Zoo()} {
		for seed := range uint64(300) {
			r := rand.New(rand.NewPCG(seed, 4))
			p := devicetest.RandomPlan(r, g)
			for i := range p.Steps {
				if r.IntN(3) == 0 {
					p.Steps[i].Scratch = graph.Bytes(r.IntN(4000))
				}
			}
			if err := proof.Validate(g, p); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			holders, want := slow(g, p)
			got := peak.Of(g, p)
			if diff := cmp.Diff(want, got.Slots); diff != "" {
				t.Fatalf("seed %d: footprint (-want +got):\n%s\n%s", seed, diff, p.Text(g))
			}
			if highest := slices.Max(want); got.Peak != highest || got.At != slices.Index(want, highest) {
				t.Errorf("seed %d: peak %d in slot %d, want %d in %d", seed, got.Peak, got.At, highest,
					slices.Index(want, highest))
			}
			if got.At > 0 {
				later++
			}
			stays := plan.StaysOf(g, p)
			for slot := range p.Steps {
				here := peak.Holders(stays, slot)
				slices.Sort(here)
				if diff := cmp.Diff(holders[slot], here); diff != "" {
					t.Fatalf("seed %d: holders in slot %d (-want +got):\n%s\n%s", seed, slot, diff, p.Text(g))
				}
			}
		}
	}
	if later < 300 {
		t.Errorf("only %d peaks are not in slot 0", later)
	}
}

// TestChain follows a footprint that can be drawn: x of 40 bytes, then y and z of as many.
//
//	slot   0 (y from x)   1 (z from y)
//	x      [=======)
//	y      [======================)
//	z                     [=======)
//	bytes  80             80 and scratch of 8
func TestChain(t *testing.T) {
	b := graph.NewBuilder("chain")
	x := b.Input("x", graph.Anything, graph.Float32, graph.Shape{10})
	y := b.Op("y", graph.ReLU, graph.Attrs{}, x)[0]
	b.Output(b.Op("z", graph.ReLU, graph.Attrs{}, y)[0])
	g, err := b.Graph()
	if err != nil {
		t.Fatal(err)
	}
	p := &plan.Plan{Graph: g.Digest(), Steps: []plan.Step{{Op: 0}, {Op: 1, Scratch: 8}}, Moves: []plan.Move{
		{Kind: plan.In, Storage: 0, After: -1}, {Kind: plan.Drop, Storage: 0, After: 0},
		{Kind: plan.Out, Storage: 2, After: 1}, {Kind: plan.Drop, Storage: 1, After: 1}, {Kind: plan.Drop, Storage: 2,
			After: 1},
	}}
	if err := proof.Validate(g, p); err != nil {
		t.Fatal(err)
	}
	want := peak.Footprint{Slots: []graph.Bytes{80, 88}, Peak: 88, At: 1}
	if diff := cmp.Diff(want, peak.Of(g, p)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]graph.StorageID{1, 2}, peak.Holders(plan.StaysOf(g, p), 1)); diff != "" {
		t.Errorf("holders (-want +got):\n%s", diff)
	}
}
