package randtest

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tensile/graph"
	"tensile/graph/invariants"
	"tensile/internal/long"
	"tensile/models/graphtest"
	"tensile/plan"
	"tensile/plan/compile"
	"tensile/plan/proof"
)

// TestEveryMoveDropped leaves out one move of a plan at a time: either Validate rejects what is left, or it is a plan
// that gives the same bits.
func TestEveryMoveDropped(t *testing.T) {
	seeds := long.Rounds(20, 120)
	d := openCPU(t)
	rejected, needless := 0, 0
	for seed := range seeds {
		rng, g := seeded(seed, graphtest.Options{Ops: 16})
		p := New(rng, g, scratchOf(d, g))
		what := fmt.Sprintf("seed %d", seed)
		want := train(t, d, 2, what, job{g: g, seed: seed, programs: programs(t, d, what, g, p)})
		for i, m := range p.Moves {
			less := *p
			less.Moves = slices.Delete(slices.Clone(p.Moves), i, i+1)
			if proof.Validate(g, &less) != nil {
				rejected++
				continue
			}
			if m.Kind != plan.Out {
				t.Fatalf("seed %d: valid without %s of %s after %d\n%s", seed, m.Kind, g.Storages[m.Storage].Name,
					m.After, p.Text(g))
			}
			needless++
			what := fmt.Sprintf("seed %d without move %d", seed, i)
			got := train(t, d, 2, what, job{g: g, seed: seed, programs: programs(t, d, what, g, &less)})
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("%s: other bits (-want +got):\n%s", what, diff)
			}
		}
	}
	t.Logf("%d moves that a plan needs, %d copies out that it does not", rejected, needless)
	if rejected < 10*int(seeds) || needless < int(seeds)/2 {
		t.Errorf("rejected %d, needless %d of %d plans", rejected, needless, seeds)
	}
}

// TestBrokenLayoutShows runs programs that no checker lets pass, with all residencies moved to the start of the arena,
// to show that a wrong program gives other bits here.
func TestBrokenLayoutShows(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector ends a test that runs such a program")
	}
	d := openCPU(t)
	const programs = 20
	ran, seen := 0, 0
	for seed := uint64(0); ran < programs; seed++ {
		rng, g := seeded(seed, graphtest.Options{})
		if slices.ContainsFunc(g.Ops, func(op graph.Op) bool { return slices.Contains(op.Inputs, labels(g)) }) {
			continue // its kernels panic at labels that are none
		}
		ran++
		p := New(rng, g, scratchOf(d, g))
		what := fmt.Sprintf("seed %d", seed)
		good := proven(t, d, g, p, what)
		layout, err := compile.Place(g, p, d.Align())
		if err != nil {
			t.Fatal(err)
		}
		clear(layout.Offsets)
		bad := compile.Compile(g, p, layout, compile.Options{Poison: invariants.Enabled})
		want := train(t, d, 2, what, job{g: g, seed: seed, programs: []proof.Proven{good}})
		*good.Program() = *bad // after its proof, since nothing else reaches a device
		got := train(t, d, 2, what, job{g: g, seed: seed, programs: []proof.Proven{good}})
		if !cmp.Equal(want, got) {
			seen++
		}
	}
	if seen < programs*9/10 {
		t.Errorf("%d of %d broken programs give other bits", seen, programs)
	}
}

func labels(g *graph.Graph) graph.TensorID {
	return graph.TensorID(slices.IndexFunc(g.Tensors, func(t graph.Tensor) bool { return t.Name == "labels" }))
}
