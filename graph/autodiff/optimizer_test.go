package autodiff

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tensile/graph"
)

// twoLayers is a network of two parameters, differentiated.
func twoLayers(t *testing.T) (draft, []Gradient) {
	t.Helper()
	d := newDraft()
	d.SetLayer("first")
	y := d.op("fc1", graph.Linear, d.input("x", 2, 3), d.param("w1", 4, 3))
	d.SetLayer("second")
	y = d.op("fc2", graph.Linear, y, d.param("w2", 5, 4))
	grads, err := Backward(d.Builder, d.loss(y))
	if err != nil {
		t.Fatal(err)
	}
	return d, grads
}

func TestOptimize(t *testing.T) {
	adam := graph.Attrs{LearningRate: 0.001, Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8}
	tests := []struct {
		name    string
		o       Optimizer
		kind    graph.Kind
		attrs   graph.Attrs
		moments []string
	}{
		{"nil", nil, graph.Adam, adam, []string{"m", "v"}},
		{"adam", Adam{}, graph.Adam, adam, []string{"m", "v"}},
		{"own adam", Adam{0.1, 0.2, 0.3, 0.4}, graph.Adam, graph.Attrs{LearningRate: 0.1, Beta1: 0.2, Beta2: 0.3,
			Epsilon: 0.4}, []string{"m", "v"}},
		{"momentum", Momentum{}, graph.Momentum, graph.Attrs{LearningRate: 0.01, Momentum: 0.9}, []string{"m"}},
		{"own momentum", Momentum{0.5, 0.25}, graph.Momentum, graph.Attrs{LearningRate: 0.5, Momentum: 0.25},
			[]string{"m"}},
		{"sgd", SGD{}, graph.SGD, graph.Attrs{LearningRate: 0.01}, nil},
		{"scaled sgd", SGD{}.Recommended(0.5), graph.SGD, graph.Attrs{LearningRate: 0.005}, nil},
		{"own sgd", SGD{0.5}.Recommended(0.5), graph.SGD, graph.Attrs{LearningRate: 0.5}, nil},
		{"still sgd", still{SGD{}}.Recommended(0.5), graph.SGD, graph.Attrs{}, nil},
		{"still adam", still{Adam{}}, graph.Adam, graph.Attrs{Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8},
			[]string{"m", "v"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			d, grads := twoLayers(t)
			before, sources := len(d.Peek().Ops), len(d.Peek().Storages)
			if err := Optimize(d.Builder, grads, test.o); err != nil {
				t.Fatal(err)
			}
			g := d.Peek()
			if err := g.Validate(); err != nil {
				t.Fatal(err)
			}
			ops := g.Ops[before:]
			if len(ops) != 2 {
				t.Fatalf("%d ops for 2 parameters", len(ops))
			}
			var states []graph.Storage
			for i, name := range []string{"w1", "w2"} {
				op := ops[i]
				if op.Kind != test.kind || op.Attrs != test.attrs || op.Phase != graph.Optimize ||
					op.Forward != graph.NoOp {
					t.Errorf("op %+v, want %s %+v", op, test.kind, test.attrs)
				}
				if op.Layer != []string{"first", "second"}[i] {
					t.Errorf("op %s is of layer %s", op.Name, op.Layer)
				}
				for _, m := range test.moments {
					states = append(states, graph.Storage{
						ID: graph.StorageID(sources + len(states)), Name: name + "." + m, Role: graph.State,
						Bytes: d.Shape(op.Inputs[0]).Bytes(), Init: &graph.Init{Kind: graph.InitZero},
					})
				}
				if got := g.Tensors[op.Outputs[0]]; got.Name != name || got.Version != 1 {
					t.Errorf("op %s makes version %d of %s", op.Name, got.Version, got.Name)
				}
			}
			if diff := cmp.Diff(states, append([]graph.Storage(nil), g.Storages[sources:]...)); diff != "" {
				t.Errorf("moments (-want +got):\n%s", diff)
			}
		})
	}
}

func TestParseOptimizer(t *testing.T) {
	tests := []struct {
		name string
		lr   *float64
		want Optimizer
	}{
		{"sgd", nil, SGD{}}, {"momentum", nil, Momentum{}}, {"adam", nil, Adam{}},
		{"sgd", new(0.5), SGD{0.5}}, {"momentum", new(0.5), Momentum{LearningRate: 0.5}},
		{"adam", new(0.5), Adam{LearningRate: 0.5}},
		{"sgd", new(0.0), still{SGD{}}}, {"momentum", new(0.0), still{Momentum{}}}, // 0 is not: not given
		{"adam", new(math.Copysign(0, -1)), still{Adam{}}},
	}
	for _, test := range tests {
		if got, err := ParseOptimizer(test.name, test.lr); err != nil || got != test.want {
			t.Errorf("ParseOptimizer(%s, %v) = %#v, %v; want %#v", test.name, test.lr, got, err, test.want)
		}
	}
	errors := []struct {
		name string
		lr   float64
		want string
	}{
		{"adagrad", 0, `unknown optimizer "adagrad": choose sgd, momentum or adam`},
		{"sgd", -1, "sgd: learning rate -1 must be at least 0 and finite"},
		{"adam", math.NaN(), "adam: learning rate NaN must be at least 0 and finite"},
		{"momentum", math.Inf(1), "sgd_momentum: learning rate +Inf must be at least 0 and finite"},
	}
	for _, test := range errors {
		o, err := ParseOptimizer(test.name, &test.lr)
		if o != nil || err == nil || err.Error() != test.want {
			t.Errorf("ParseOptimizer(%s, %v) = %v, %v; want %s", test.name, test.lr, o, err, test.want)
		}
	}
}

func TestOptimizeErrors(t *testing.T) {
	tests := []struct {
		o    Optimizer
		want string
	}{
		{Adam{Beta1: 1, Beta2: -0.5, Epsilon: -1}, "adam: beta1 1 must be at least 0 and below 1\n" +
			"adam: beta2 -0.5 must be at least 0 and below 1\nadam: epsilon -1 must be positive and finite"},
		{Momentum{Momentum: math.NaN()}, "sgd_momentum: momentum NaN must be at least 0 and below 1"},
	}
	for _, test := range tests {
		d, grads := twoLayers(t)
		before := len(d.Peek().Ops)
		if err := Optimize(d.Builder, grads, test.o); err == nil || err.Error() != test.want {
			t.Errorf("%#v: error %v, want %s", test.o, err, test.want)
		}
		if len(d.Peek().Ops) != before {
			t.Errorf("%#v: ops were appended", test.o)
		}
	}
}
