package passes_test

import (
	"testing"

	"tensile/graph"
	"tensile/graph/autodiff"
	"tensile/models"
	"tensile/models/nettest"
	"tensile/models/passes"
)

// The graph of a replica goes through all passes and keeps its all-reduces: one per update, of a gradient that nothing
// touches between the two. That holds for parameters that are divided into tiles too.
func TestReplicas(t *testing.T) {
	graphs := make(map[string]*graph.Graph)
	for _, name := range models.Names() {
		g, err := nettest.Build(name)
		if err != nil {
			t.Fatal(err)
		}
		graphs[name] = g
	}
	large, err := models.Build("vgg16", models.Config{Batch: 2})
	if err != nil {
		t.Fatal(err)
	}
	graphs["vgg16, with parameters above 16 MiB"] = large
	for name, g := range graphs {
		r, err := autodiff.Replicate(g, 2)
		if err != nil {
			t.Fatal(err)
		}
		rewritten, _, err := passes.Apply(r, passes.Names())
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if err := rewritten.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got, want := reductions(rewritten), reductions(r); got != want {
			t.Errorf("%s: %d all-reduces, want %d", name, got, want)
		}
		made := make(map[graph.Version]graph.Kind)
		for _, op := range rewritten.Ops {
			if op.Phase == graph.Optimize && made[rewritten.Version(op.Inputs[1])] != graph.AllReduce {
				t.Errorf("%s: %s reads what %s made, want a mean over the replicas", name, op.Name,
					made[rewritten.Version(op.Inputs[1])])
			}
			for _, v := range rewritten.Writes(op.ID) {
				made[v] = op.Kind
			}
		}
	}
}

func reductions(g *graph.Graph) (n int) {
	for _, op := range g.Ops {
		if op.Kind == graph.AllReduce {
			n++
		}
	}
	return n
}
