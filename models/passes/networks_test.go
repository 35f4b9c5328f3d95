package passes_test

import (
	"fmt"
	"testing"

	"tensile/graph"
	"tensile/internal/long"
	"tensile/models"
	"tensile/models/graphtest"
	"tensile/models/nettest"
	"tensile/models/passes"
	"tensile/plan/program"
)

// large is the pass for parameters above 16 MiB, which the graphs here are without: plan/randtest has its tests.
const large = "tiles"

// each rewrites a graph by each pass alone, and by all of them.
func each(t *testing.T, g *graph.Graph, do func(choice string, rewritten *graph.Graph, outcomes []passes.Outcome)) {
	t.Helper()
	for _, choice := range append(passes.Names(), passes.All) {
		names, err := passes.Parse(choice)
		if err != nil {
			t.Fatal(err)
		}
		rewritten, outcomes, err := passes.Apply(g, names)
		if err != nil {
			t.Fatalf("%s: %v", choice, err)
		}
		do(choice, rewritten, outcomes)
	}
}

// TestEveryNetworkKeepsItsBits trains the small form of every network, with batches from 2 to 5, as it is, after each
// pass that changes it, and after all of them: losses and weights are the same, bit for bit.
func TestEveryNetworkKeepsItsBits(t *testing.T) {
	changed := make(map[string]int)
	for i, name := range models.Names() {
		if !long.On() && i%4 != 0 {
			continue
		}
		t.Run(name, func(t *testing.T) {
			g, err := nettest.BuildBatch(name, 2+i%4)
			if err != nil {
				t.Fatal(err)
			}
			if raceEnabled && len(g.Ops) > 300 {
				t.Skip("the race detector makes deep networks slow: run without -race")
			}
			want := trained(t, g, 2)
			each(t, g, func(choice string, rewritten *graph.Graph, outcomes []passes.Outcome) {
				places := 0
				for _, o := range outcomes {
					places += o.Changed
				}
				if places == 0 {
					return
				}
				changed[choice]++
				if _, err := program.Match(g, rewritten); err != nil {
					t.Errorf("%s: %v", choice, err)
				}
				trained(t, rewritten, 2).equal(t, choice, want)
			})
		})
	}
	for _, name := range passes.Names() {
		if name != large && changed[name] < long.Or(1, 2) {
			t.Errorf("pass %s changes %d networks", name, changed[name])
		}
	}
}

// TestRandomGraphsKeepTheirBits is the same for random graphs, which have views, updates in place and several outputs
// wherever they may be.
func TestRandomGraphsKeepTheirBits(t *testing.T) {
	changed := make(map[string]int)
	seeds := long.Rounds(60, 600)
	for seed := range seeds {
		g := graphtest.New(randoms(seed), graphtest.Options{})
		want := trainedRandom(t, g, 2)
		each(t, g, func(choice string, rewritten *graph.Graph, outcomes []passes.Outcome) {
			for _, o := range outcomes {
				changed[o.Pass] += o.Changed
			}
			trainedRandom(t, rewritten, 2).equal(t, fmt.Sprintf("seed %d, %s", seed, choice), want)
			if t.Failed() {
				t.FailNow()
			}
		})
	}
	t.Logf("places changed: %v", changed)
	for _, name := range passes.Names() {
		if name != large && changed[name] < int(seeds)/30 {
			t.Errorf("pass %s changed %d places", name, changed[name])
		}
	}
}
