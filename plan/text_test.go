package plan_test

import (
	"encoding/json"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tensile/device/devicetest"
	"tensile/graph"
	"tensile/internal/golden"
	"tensile/models/graphtest"
	"tensile/plan"
	"tensile/plan/proof"
	"tensile/plan/randtest"
)

// TestText keeps the printed form of a plan with swaps, a synchronous copy, a delay and an op that runs again.
func TestText(t *testing.T) {
	g := devicetest.Tiny()
	p := devicetest.Swapped(g)
	p.Policy, p.Epoch = "golden", 3
	marked := map[plan.MoveKind]bool{}
	for i := range p.Moves {
		switch m := &p.Moves[i]; {
		case marked[m.Kind]:
		case m.Kind == plan.Out:
			m.Sync = true
			marked[m.Kind] = true
		case m.Kind == plan.In:
			m.Delay = 15 * time.Microsecond
			marked[m.Kind] = true
		}
	}
	if err := proof.Validate(g, p); err != nil {
		t.Fatal(err)
	}
	golden.Compare(t, filepath.Join("testdata", "swapped.txt"), p.Text(g))
}

// random returns the graph and the plan of a seed.
func random(seed uint64) (*graph.Graph, *plan.Plan) {
	rng := rand.New(rand.NewPCG(seed, 8))
	g := graphtest.New(rng, graphtest.Options{Passes: seed/2%2 == 1})
	return g, randtest.New(rng, g, make([]graph.Bytes, len(g.Ops)))
}

// TestJSON shows that a plan is the same after it was written and read.
func TestJSON(t *testing.T) {
	for seed := range uint64(200) {
		_, p := random(seed)
		text, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		got := new(plan.Plan)
		if err := json.Unmarshal(text, got); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if diff := cmp.Diff(p, got); diff != "" {
			t.Fatalf("seed %d (-written +read):\n%s", seed, diff)
		}
	}
}
