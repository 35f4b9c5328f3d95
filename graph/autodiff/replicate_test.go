package autodiff_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"tensile/graph"
	"tensile/graph/autodiff"
	"tensile/models"
	"tensile/models/nettest"
)

func replicate(t *testing.T, g *graph.Graph, replicas int) *graph.Graph {
	t.Helper()
	r, err := autodiff.Replicate(g, replicas)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Of every network the replicas' graph is valid, and each update reads a mean that is made once, of a gradient that no
// op reads afterwards. Without its all-reduces it is the graph itself.
func TestReplicateEveryNetwork(t *testing.T) {
	for _, name := range models.Names() {
		g, err := nettest.Build(name)
		if err != nil {
			t.Fatal(err)
		}
		r := replicate(t, g, 3)
		if got := r.Replicas(); got != 3 {
			t.Errorf("%s: %d replicas, want 3", name, got)
		}
		means := make(map[graph.Version]bool)
		var rest []graph.Op
		for _, op := range r.Ops {
			switch {
			case op.Kind == graph.AllReduce:
				means[r.Version(op.Outputs[0])] = true
				continue
			case op.Phase == graph.Optimize && !means[r.Version(op.Inputs[1])]:
				t.Errorf("%s: %s reads a gradient that is no mean", name, op.Name)
			}
			rest = append(rest, op)
		}
		if !slices.EqualFunc(rest, g.Ops, func(a, b graph.Op) bool { return a.Name == b.Name && a.Kind == b.Kind }) {
			t.Errorf("%s: other ops than before", name)
		}
	}
}

// The reduction of a gradient comes as soon as the gradient is whole: before the last op of the backward pass in a
// network of several layers.
func TestReplicateReducesEarly(t *testing.T) {
	g, err := nettest.Build("mlp")
	if err != nil {
		t.Fatal(err)
	}
	r := replicate(t, g, 2)
	var order []string
	for _, op := range r.Ops {
		if op.Phase == graph.Backward {
			order = append(order, string(op.Kind))
		}
	}
	first := slices.Index(order, string(graph.AllReduce))
	if first < 0 || first > len(order)/2 {
		t.Errorf("the first all-reduce is number %d of the backward pass: %v", first, order)
	}
}

// lockstep runs the same ops of several replicas, each with its own inputs, and reduces as the kind says: the sum in
// the order of the replicas, divided by how many they are.
func lockstep(replicas []*interpreter) {
	for i := range replicas[0].g.Ops {
		op := &replicas[0].g.Ops[i]
		switch {
		case op.Phase == graph.Optimize:
		case op.Kind == graph.AllReduce:
			mean := slices.Clone(replicas[0].at(op.Inputs[0]))
			for _, m := range replicas[1:] {
				for k, v := range m.at(op.Inputs[0]) {
					mean[k] += v
				}
			}
			for _, m := range replicas {
				for k := range mean {
					m.at(op.Outputs[0])[k] = mean[k] / float64(op.Attrs.Replicas)
				}
			}
		default:
			for _, m := range replicas {
				m.op(op)
			}
		}
	}
}

// What the updates of replicas read is the gradient of the mean of their losses: that of one network with all of their
// examples in its batch, where no op mixes examples.
func TestReplicatedGradients(t *testing.T) {
	const replicas, batch = 3, 4
	build := func(batch int) *graph.Graph {
		g, err := models.Build("mlp", models.Config{Image: 5, Batch: batch, Thin: 16})
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	whole := newInterpreter(t, build(replicas*batch))
	g := replicate(t, build(batch), replicas)
	var all []*interpreter
	for r := range replicas {
		m := newInterpreter(t, g)
		for _, s := range g.Storages {
			from := whole.storages[slices.IndexFunc(whole.g.Storages,
				func(o graph.Storage) bool { return o.Name == s.Name })]
			switch {
			case s.Role == graph.Input:
				n := len(m.storages[s.ID])
				copy(m.storages[s.ID], from[r*n:])
			case s.Role.Persistent():
				copy(m.storages[s.ID], from)
			}
		}
		all = append(all, m)
	}
	whole.run(graph.Forward, graph.Backward)
	lockstep(all)
	var losses float64
	for r, m := range all {
		losses += m.storages[m.g.OutputStorage()][0] / replicas
		for i, d := range m.gradients() {
			for k, want := range whole.gradients()[i].elements {
				if got := d.elements[k]; math.Abs(got-want) > 1e-12*max(1, math.Abs(want)) {
					t.Fatalf("replica %d: element %d of the gradient of %s is %v, want %v", r, k,
						g.Storages[d.parameter].Name, got, want)
				}
			}
		}
	}
	if want := whole.storages[whole.g.OutputStorage()][0]; math.Abs(losses-want) > 1e-12 {
		t.Errorf("the mean of the losses is %v, want %v", losses, want)
	}
}

func TestReplicateRefuses(t *testing.T) {
	g, err := nettest.Build("mlp")
	if err != nil {
		t.Fatal(err)
	}
	if one := replicate(t, g, 1); one != g {
		t.Error("one replica has another graph")
	}
	// an update that reads a part of a gradient
	part := graph.NewBuilder("part")
	x := part.Input("x", graph.Anything, graph.Float32, graph.Shape{2, 3})
	w := part.Persistent("w", graph.Parameter, graph.Shape{3, 3}, graph.Init{Kind: graph.InitZero})
	loss := part.Op("loss", graph.MeanSquare, graph.Attrs{}, part.Op("fc", graph.Linear, graph.Attrs{}, x, w)[0], x)[0]
	part.Output(loss)
	grads, err := autodiff.Backward(part, loss)
	if err != nil {
		t.Fatal(err)
	}
	part.SetPhase(graph.Optimize)
	part.Op("half", graph.SGD, graph.Attrs{LearningRate: 1}, part.View("w0", w, 0, graph.Shape{1, 3}),
		part.View("dw0", grads[0].Gradient, 0, graph.Shape{1, 3}))
	halved, err := part.Graph()
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		g        *graph.Graph
		replicas int
		want     string
	}{
		{g, 0, "0 replicas: give 1 to 1024"},
		{g, 1025, "1025 replicas: give 1 to 1024"},
		{replicate(t, g, 2), 2, "has 2 replicas and 0 passes"},
		{halved, 2, "op half: it reads a part of gradient"},
	} {
		_, err := autodiff.Replicate(test.g, test.replicas)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s, %d replicas: error %v, want %q", test.g.Name, test.replicas, err, test.want)
		}
	}
}

// What is not right about all-reduces is said by graph.Validate.
func TestReplicatedGraphIsChecked(t *testing.T) {
	g, err := nettest.Build("mlp")
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		change func(g *graph.Graph, op *graph.Op)
		want   string
	}{
		{func(_ *graph.Graph, op *graph.Op) { op.Attrs.Replicas = 1 }, "replicas 1: must be 2 to 1024"},
		{func(_ *graph.Graph, op *graph.Op) { op.Attrs.Replicas = 3 }, "over 3 replicas, others are over 2"},
		{func(g *graph.Graph, op *graph.Op) {
			g.Storages[g.Tensors[op.Inputs[0]].Storage].Role = graph.Activation
		}, "want a gradient of float32"},
		{func(g *graph.Graph, op *graph.Op) { op.Outputs[0] = op.Inputs[0] }, "must be the next version"},
	} {
		r := replicate(t, g, 2)
		for i := range slices.Backward(r.Ops) {
			if r.Ops[i].Kind == graph.AllReduce {
				test.change(r, &r.Ops[i])
				break
			}
		}
		if err := r.Validate(); err == nil || !strings.Contains(fmt.Sprint(err), test.want) {
			t.Errorf("error %v, want %q", err, test.want)
		}
	}
}
