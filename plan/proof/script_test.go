package proof_test

import (
	"errors"
	"slices"
	"testing"

	"tensile/graph"
	"tensile/plan"
	"tensile/plan/proof"
)

// script makes a and b, updates w by b, and holds a until before the last op.
func script() *graph.Graph {
	tensor := func(id graph.TensorID, s graph.StorageID, version, bytes int) graph.Tensor {
		return graph.Tensor{ID: id, Storage: s, Version: version, Shape: graph.Shape{bytes}, DType: graph.Uint8}
	}
	op := func(id graph.OpID, in, out []graph.TensorID) graph.Op {
		return graph.Op{ID: id, Kind: graph.Opaque, Inputs: in, Outputs: out, Phase: graph.Forward, Forward: graph.NoOp,
			Attrs: graph.Attrs{Scratch: 5}}
	}
	return &graph.Graph{Name: "script", Storages: []graph.Storage{
		{ID: 0, Name: "w", Role: graph.Parameter, Bytes: 3},
		{ID: 1, Name: "a", Role: graph.Activation, Bytes: 7, Until: 3},
		{ID: 2, Name: "b", Role: graph.Activation, Bytes: 9},
		{ID: 3, Name: "c", Role: graph.Activation, Bytes: 1},
	}, Tensors: []graph.Tensor{tensor(0, 0, 0, 3), tensor(1, 1, 0, 7), tensor(2, 2, 0, 9), tensor(3, 0, 1, 3),
		tensor(4, 3, 0, 1)},
		Ops: []graph.Op{op(0, []graph.TensorID{0}, []graph.TensorID{1, 2}), op(1, []graph.TensorID{1}, nil),
			op(2, []graph.TensorID{0, 2}, []graph.TensorID{3}), op(3, nil, []graph.TensorID{4})}}
}

// scriptPlan copies a out and drops it for good, and makes b again.
func scriptPlan(g *graph.Graph) *plan.Plan {
	return &plan.Plan{Graph: g.Digest(), Entry: []graph.StorageID{0},
		Steps: []plan.Step{{Op: 0, Scratch: 5}, {Op: 1, Scratch: 5}, {Op: 0, Want: 2, Scratch: 21}, {Op: 2, Scratch: 5},
			{Op: 3, Scratch: 5}},
		Moves: []plan.Move{{Kind: plan.Drop, Storage: 2, After: 0}, {Kind: plan.Out, Storage: 1, After: 1},
			{Kind: plan.Drop, Storage: 1, After: 1}, {Kind: plan.Drop, Storage: 2, After: 3},
			{Kind: plan.Drop, Storage: 3, After: 4}}}
}

// TestScript shows what a plan of a script's graph may do, and what not.
func TestScript(t *testing.T) {
	g := script()
	if err := g.Validate(); err != nil {
		t.Fatal(err)
	}
	if err := proof.Validate(g, scriptPlan(g)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		want   error
		change func(*graph.Graph, *plan.Plan)
	}{
		{"ops in another order", proof.ErrOrder, func(_ *graph.Graph, p *plan.Plan) {
			p.Steps[3].Op, p.Steps[4].Op = 3, 2
		}},
		{"less than all outputs at first", proof.ErrOrder, func(_ *graph.Graph, p *plan.Plan) { p.Steps[0].Want = 3 }},
		{"less scratch", proof.ErrScratch, func(_ *graph.Graph, p *plan.Plan) { p.Steps[1].Scratch = 4 }},
		{"no room for outputs made again", proof.ErrScratch, func(_ *graph.Graph, p *plan.Plan) {
			p.Steps[2].Scratch = 20
		}},
		{"what is held is lost", proof.ErrLost, func(_ *graph.Graph, p *plan.Plan) {
			p.Moves = slices.Delete(p.Moves, 1, 2)
		}},
		{"what is held to the end is lost", proof.ErrLost, func(g *graph.Graph, p *plan.Plan) {
			g.Storages[1].Until = 4
			p.Moves = slices.Delete(p.Moves, 1, 2)
		}},
		{"an op that must not is run again", proof.ErrImpure, func(g *graph.Graph, _ *plan.Plan) {
			g.Ops[0].Attrs.Once = true
		}},
	} {
		g := script()
		p := scriptPlan(g)
		c.change(g, p)
		p.Graph = g.Digest()
		if err := proof.Validate(g, p); !errors.Is(err, c.want) {
			t.Errorf("%s: error %v, want %v", c.name, err, c.want)
		}
	}
}
