package randtest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tensile/device/cpu"
	"tensile/graph"
	"tensile/graph/autodiff"
	"tensile/models/graphtest"
	"tensile/models/nettest"
	"tensile/models/passes"
	"tensile/models/task"
	"tensile/plan"
)

// smallTiles divides parameters that are far below the size from which the cpu device computes gradients in tiles: into
// three, or into tiles of 32 rows and more.
func smallTiles(s graph.Shape) int {
	if s.Bytes() < 256 {
		return s[0]
	}
	if s[0] < 32 {
		return (s[0] + 2) / 3
	}
	for n := s[0] / 32; n > 1; n-- {
		if rows := (s[0] + n - 1) / n; s[0]-(n-1)*rows >= 32 {
			return rows
		}
	}
	return s[0]
}

// whole is an outcome with persistent storages as files have them, by name and shape, parts in one piece.
type whole struct{ Outputs, Kept map[string][]uint32 }

func joined(g *graph.Graph, o outcome) whole {
	contents := make(map[graph.StorageID][]float32)
	for s, values := range o.Weights {
		for _, v := range values {
			contents[s] = append(contents[s], math.Float32frombits(v))
		}
	}
	all := whole{o.Outputs, make(map[string][]uint32)}
	for _, x := range (task.Task{Graph: g}).File(0, contents).Tensors {
		all.Kept[x.Name+fmt.Sprint(x.Shape)] = bits(x.Data)
	}
	return all
}

// checkTiles trains a graph and what the pass tiles makes of it, by plain plans, by plans for less memory and by random
// ones, and compares all bits.
func checkTiles(t *testing.T, d *cpu.Device, g *graph.Graph, rows func(graph.Shape) int, plans int) passes.Outcome {
	t.Helper()
	rng := rand.New(rand.NewPCG(uint64(len(g.Ops)), 4))
	tiled, outcome, err := passes.Tiles(g, rows)
	if err != nil {
		t.Fatal(err)
	}
	open := func(g *graph.Graph) *task.Task {
		opened, err := task.Open(nil, g, 3, "")
		if err != nil {
			t.Fatal(err)
		}
		return &opened
	}
	want := joined(g, train(t, d, 2, "plain", job{g: g, seed: 3, task: open(g),
		programs: programs(t, d, "plain", g, vanilla(t, d, g))})[0])
	for i := range plans {
		what, p := "tiles", vanilla(t, d, tiled)
		switch {
		case i == 1:
			what, p = "tiles in less memory", tight(t, d, rng, tiled)
		case i > 1:
			what, p = fmt.Sprintf("tiles, random plan %d", i), New(rng, tiled, scratchOf(d, tiled))
		}
		got := joined(tiled, train(t, d, 2, what, job{g: tiled, seed: 3, task: open(tiled),
			programs: programs(t, d, what, tiled, p)})[0])
		if diff := cmp.Diff(want.Outputs, got.Outputs); diff != "" {
			t.Fatalf("%s: other losses (-want +got):\n%s", what, diff)
		}
		if len(got.Kept) != len(want.Kept) {
			t.Fatalf("%s: %d tensors are kept, want %d", what, len(got.Kept), len(want.Kept))
		}
		for name := range want.Kept {
			if !slices.Equal(want.Kept[name], got.Kept[name]) {
				t.Fatalf("%s: %s has other bits", what, name)
			}
		}
	}
	return outcome
}

// TestTilesOfNetworks: with the pass tiles a network trains to the same bits, whatever the plan and the optimizer.
// Random plans are for graphs of a few ops.
func TestTilesOfNetworks(t *testing.T) {
	d := openCPU(t)
	optimizers := map[string]autodiff.Optimizer{"sgd": autodiff.SGD{}, "momentum": autodiff.Momentum{},
		"adam": autodiff.Adam{}}
	for _, test := range []struct {
		network, optimizer string
		changed            int // parameters at least
		plans              int
	}{
		{"tied", "sgd", 1, 8}, {"tied", "momentum", 1, 8}, {"tied", "adam", 1, 8},
		{"mlp", "sgd", 3, 4}, {"mlp", "momentum", 3, 4}, {"mlp", "adam", 3, 4},
		{"alexnet", "adam", 3, 2}, {"gpt2", "adam", 10, 2}, {"gnmt", "momentum", 10, 2}, {"rhn", "sgd", 1, 2},
		{"tacotron2", "adam", 5, 2},
	} {
		t.Run(test.network+"/"+test.optimizer, func(t *testing.T) {
			g, err := tiedNetwork(90, 9, optimizers[test.optimizer])
			if test.network != "tied" {
				g, err = nettest.BuildFor(test.network, optimizers[test.optimizer])
			}
			if err != nil {
				t.Fatal(err)
			}
			if outcome := checkTiles(t, d, g, smallTiles, test.plans); outcome.Changed < test.changed {
				t.Errorf("%d parameters in tiles, want %d: %+v", outcome.Changed, test.changed, outcome.Refused)
			}
		})
	}
}

// tiedNetwork has a table that is read as an embedding and as the weights of a linear layer.
func tiedNetwork(rows, width int, o autodiff.Optimizer) (*graph.Graph, error) {
	b := graph.NewBuilder("tied")
	ids := b.Input("ids", graph.Tokens, graph.Int64, graph.Shape{1, 5})
	next := b.Input("next", graph.NextTokens, graph.Float32, graph.Shape{1, 5})
	table := b.Persistent("table", graph.Parameter, graph.Shape{rows, width}, graph.Init{Kind: graph.InitNormal,
		Scale: 0.02})
	x := b.Op("embedding", graph.Embedding, graph.Attrs{}, table, b.View("ids.rows", ids, 0, graph.Shape{5}))[0]
	y := b.Op("head", graph.Linear, graph.Attrs{}, b.Op("gelu", graph.GELU, graph.Attrs{}, x)[0], table)[0]
	loss := b.Op("loss", graph.SoftmaxXent, graph.Attrs{}, y, b.View("next.rows", next, 0, graph.Shape{5}))[0]
	b.Output(loss)
	grads, err := autodiff.Backward(b, loss)
	if err != nil {
		return nil, err
	}
	if err := autodiff.Optimize(b, grads, o); err != nil {
		return nil, err
	}
	return b.Graph()
}

// TestTilesOfLargeParameter: so it is with the tiles that networks really have.
func TestTilesOfLargeParameter(t *testing.T) {
	g, err := tiedNetwork(2103, 2049, nil)
	if err != nil {
		t.Fatal(err)
	}
	engines(t, func(t *testing.T, d *cpu.Device) {
		if outcome := checkTiles(t, d, g, nil, 2); outcome.Changed != 1 {
			t.Errorf("%+v, want one parameter in tiles", outcome)
		}
	})
}

// TestTilesOfRandomGraphs: so it is with graphs in which gradients, parameters and states are used in any way, where
// the pass does not refuse them.
func TestTilesOfRandomGraphs(t *testing.T) {
	const seeds = 400
	d := openCPU(t)
	halves := func(s graph.Shape) int { return (s[0] + 1) / 2 }
	changed, refused := 0, 0
	for seed := range uint64(seeds) {
		rng, g := seeded(seed, graphtest.Options{Trained: true})
		// some have been through all passes, this one among them, for which they have no parameters that are large
		// enough
		g.Passes = slices.DeleteFunc(g.Passes, func(name string) bool { return name == "tiles" })
		tiled, outcome, err := passes.Tiles(g, halves)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		changed, refused = changed+outcome.Changed, refused+len(outcome.Refused)
		if outcome.Changed == 0 {
			continue
		}
		what := fmt.Sprintf("seed %d", seed)
		want := joined(g, train(t, d, 3, what, job{g: g, seed: seed, programs: programs(t, d, what, g,
			vanilla(t, d, g))})[0])
		for _, p := range []*plan.Plan{vanilla(t, d, tiled), New(rng, tiled, scratchOf(d, tiled))} {
			got := joined(tiled, train(t, d, 3, what, job{g: tiled, seed: seed, programs: programs(t, d, what, tiled,
				p)})[0])
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("%s: other bits in tiles (-want +got):\n%s", what, diff)
			}
		}
	}
	t.Logf("%d parameters in tiles, %d refused", changed, refused)
	if changed < seeds/4 || refused < seeds {
		t.Errorf("%d parameters in tiles, %d refused in %d graphs", changed, refused, seeds)
	}
}
