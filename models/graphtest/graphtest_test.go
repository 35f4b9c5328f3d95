package graphtest

import (
	"math/rand/v2"
	"testing"

	"tensile/graph"
	_ "tensile/internal/long" // the flag -long
)

// promised are the kinds that the generator makes. What planners and proofs see of a kind is how many tensors it reads
// and makes and which it updates in place: these have every form, and a new kind of a known form need not be added.
var promised = []graph.Kind{
	graph.Conv2D, graph.Conv2DDW, graph.Conv2DDX, graph.Linear, graph.LinearDW, graph.LinearDX, graph.BiasDB,
	graph.ReLU, graph.ReLUDX,
	graph.MaxPool, graph.MaxPoolDX, graph.AvgPool, graph.AvgPoolDX, graph.BatchNormStats, graph.BatchNorm,
	graph.BatchNormUpdate,
	graph.BatchNormGrad, graph.Add, graph.Mul, graph.Dropout, graph.DropoutDX, graph.SoftmaxXent, graph.SoftmaxXentDX,
	graph.SGD, graph.Momentum, graph.Adam, graph.Accumulate, graph.Scale,
}

// TestNew shows that every graph is valid and small, and that the generator makes everything that it promises.
func TestNew(t *testing.T) {
	const seeds = 2000
	kinds := map[graph.Kind]int{}
	found := map[string]int{}
	for seed := range uint64(seeds) {
		g := New(rand.New(rand.NewPCG(seed, 0)), Options{})
		if err := g.Validate(); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if len(g.Ops) > 40 {
			t.Fatalf("seed %d: %d ops", seed, len(g.Ops))
		}
		for _, s := range g.Storages {
			if s.Bytes > maxElements*graph.ElementBytes {
				t.Fatalf("seed %d: %s has %v", seed, s.Name, s.Bytes)
			}
		}
		for _, op := range g.Ops {
			kinds[op.Kind]++
		}
		for what, has := range features(g) {
			if has {
				found[what]++
			}
		}
		if !features(g)["output"] {
			t.Fatalf("seed %d: no output", seed)
		}
	}
	for _, k := range promised {
		if kinds[k] < seeds/20 {
			t.Errorf("%d ops of kind %s in %d graphs", kinds[k], k, seeds)
		}
	}
	t.Logf("of %d graphs: %v", seeds, found)
	for what, n := range found {
		if n < seeds/10 {
			t.Errorf("%s in %d graphs of %d", what, n, seeds)
		}
	}
}

func features(g *graph.Graph) map[string]bool {
	readers := map[graph.StorageID]int{}
	has := map[string]bool{"fan-out": false, "view": false, "partial view": false, "activation in place": false,
		"several updates": false, "unread": false, "output": false, "output in place": false}
	for _, op := range g.Ops {
		seen := map[graph.StorageID]bool{}
		for _, r := range g.Reads(op.ID) {
			if !seen[r.Storage] {
				seen[r.Storage] = true
				readers[r.Storage]++
			}
		}
		for _, t := range op.Inputs {
			tensor := g.Tensors[t]
			has["partial view"] = has["partial view"] || tensor.Bytes() < g.Storages[tensor.Storage].Bytes
		}
	}
	for _, t := range g.Tensors {
		has["view"] = has["view"] || len(t.Name) > 4 && t.Name[:4] == "view"
	}
	for s, last := range g.LastVersions() {
		role := g.Storages[s].Role
		n := readers[graph.StorageID(s)]
		has["fan-out"] = has["fan-out"] || n > 2
		has["unread"] = has["unread"] || n == 0 && !role.FromHost()
		has["output"] = has["output"] || role == graph.Output
		has["output in place"] = has["output in place"] || role == graph.Output && last > 0
		has["several updates"] = has["several updates"] || role == graph.Parameter && last > 1
		has["activation in place"] = has["activation in place"] || !role.FromHost() && last > 0
	}
	return has
}

// TestSameSeed shows that a seed names a graph.
func TestSameSeed(t *testing.T) {
	for seed := range uint64(50) {
		a, b := New(rand.New(rand.NewPCG(seed, 1)), Options{}), New(rand.New(rand.NewPCG(seed, 1)), Options{})
		if a.Digest() != b.Digest() {
			t.Fatalf("seed %d: two graphs", seed)
		}
	}
}
