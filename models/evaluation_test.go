package models

import (
	"strings"
	"testing"

	"tensile/graph"
)

// Every classifier has an evaluation graph, whose ops are those that its training graph predicts with: no statistics,
// updates, dropout or loss, and no storage of the optimizer's.
func TestEvaluation(t *testing.T) {
	for _, test := range small {
		if sequences, err := ReadsSequences(test.model); err != nil || sequences {
			continue
		}
		g := build(t, test.model, test.c)
		e, err := Evaluation(g)
		if err != nil {
			t.Errorf("%s: %v", test.model, err)
			continue
		}
		want := 0
		for _, op := range g.Ops {
			switch op.Kind {
			case graph.BatchNormStats, graph.BatchNormUpdate, graph.Dropout, graph.SoftmaxXent:
			default:
				if op.Phase == graph.Forward {
					want++
				}
			}
		}
		if len(e.Ops) != want {
			t.Errorf("%s evaluates with %d ops, want %d", test.model, len(e.Ops), want)
		}
		if e.Parameters() != g.Parameters() {
			t.Errorf("%s evaluates with %d parameters, want %d", test.model, e.Parameters(), g.Parameters())
		}
		for _, op := range e.Ops {
			switch op.Kind {
			case graph.BatchNormStats, graph.BatchNormUpdate, graph.Dropout, graph.SoftmaxXent:
				t.Errorf("%s evaluates with %s, which is a %s", test.model, op.Name, op.Kind)
			case graph.BatchNorm:
				for i, suffix := range []string{".running_mean", ".running_variance", ".gamma", ".beta"} {
					if name := e.Tensors[op.Inputs[i+1]].Name; name != op.Name+suffix {
						t.Errorf("%s: %s reads %s, want %s", test.model, op.Name, name, op.Name+suffix)
					}
				}
			}
		}
		for _, s := range e.Storages {
			if s.Role == graph.State && !strings.Contains(s.Name, ".running_") {
				t.Errorf("%s evaluates with %s", test.model, s.Name)
			}
			if s.Name == "labels" {
				t.Errorf("%s reads labels to evaluate", test.model)
			}
		}
	}
}

// What does not name classes is refused.
func TestEvaluationErrors(t *testing.T) {
	if _, err := Evaluation(build(t, "tacotron:1,16", Config{Sequence: 2, Batch: 2})); err == nil ||
		!strings.Contains(err.Error(), "no single loss of classes") {
		t.Errorf("tacotron: error %v", err)
	}
}

// A normalisation that keeps no running statistics uses those of what it is given.
func TestEvaluationOfOwnStatistics(t *testing.T) {
	b := graph.NewBuilder("plain")
	x := b.Input("x", graph.Images, graph.Float32, graph.Shape{2, 3, 4, 4})
	stats := b.Op("stats", graph.BatchNormStats, graph.Attrs{}, x)
	one := graph.Init{Kind: graph.InitOne}
	x = b.Op("norm", graph.BatchNorm, graph.Attrs{Epsilon: 1e-5}, x, stats[0], stats[1],
		b.Persistent("gamma", graph.Parameter, graph.Shape{3}, one), b.Persistent("beta", graph.Parameter,
			graph.Shape{3}, one))[0]
	loss := b.Op("loss", graph.SoftmaxXent, graph.Attrs{}, b.View("rows", x, 0, graph.Shape{2, 48}),
		b.Input("labels", graph.Labels, graph.Float32, graph.Shape{2}))
	b.Output(loss[0])
	g, err := b.Graph()
	if err != nil {
		t.Fatal(err)
	}
	e, err := Evaluation(g)
	if err != nil {
		t.Fatal(err)
	}
	if len(e.Ops) != 2 || e.Ops[0].Kind != graph.BatchNormStats || e.Ops[1].Kind != graph.BatchNorm ||
		e.Ops[1].Inputs[1] != e.Ops[0].Outputs[0] {
		t.Errorf("it evaluates by %+v", e.Ops)
	}
}
