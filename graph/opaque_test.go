package graph

import (
	"strings"
	"testing"
)

// opaqueGraph is x[3] (float64), w[2] -> y[5] (int64), w updated.
func opaqueGraph() *Graph {
	return &Graph{Name: "opaque",
		Storages: []Storage{
			{ID: 0, Name: "x", Role: Input, Bytes: 24}, {ID: 1, Name: "w", Role: Parameter, Bytes: 8,
				Init: &Init{Kind: InitOne}},
			{ID: 2, Name: "y", Role: Output, Bytes: 40},
		},
		Tensors: []Tensor{
			{ID: 0, Name: "x", Storage: 0, Shape: Shape{3}, DType: Float64}, {ID: 1, Name: "w", Storage: 1,
				Shape: Shape{2}},
			{ID: 2, Name: "y", Storage: 2, Shape: Shape{5}, DType: Int64}, {ID: 3, Name: "w", Storage: 1, Version: 1,
				Shape: Shape{2}},
		},
		Ops: []Op{{ID: 0, Name: "any", Kind: Opaque, Inputs: []TensorID{0, 1}, Outputs: []TensorID{2, 3},
			Attrs: Attrs{FLOPs: 7},
			Phase: Forward, Forward: NoOp}},
	}
}

func TestOpaque(t *testing.T) {
	g := opaqueGraph()
	if err := g.Validate(); err != nil {
		t.Fatal(err)
	}
	if fresh, updated := g.Updated(0, 0), g.Updated(0, 1); fresh != -1 || updated != 1 {
		t.Errorf("outputs update inputs %d and %d, want -1 and 1", fresh, updated)
	}
	if got, want := g.Cost(0), (Cost{FLOPs: 7, Bytes: 24 + 8 + 40 + 8}); got != want {
		t.Errorf("costs %+v, want %+v", got, want)
	}
}

// An op with no effect but its outputs may run twice, unless it says otherwise.
func TestOpaqueOnce(t *testing.T) {
	g := opaqueGraph()
	g.Ops[0].Inputs, g.Ops[0].Outputs = []TensorID{0, 1}, []TensorID{2}
	g.Tensors = g.Tensors[:3]
	for _, once := range []bool{false, true} {
		g.Ops[0].Attrs.Once = once
		if err := g.Validate(); err != nil {
			t.Fatal(err)
		}
		if g.Pure(0) == once {
			t.Errorf("once %v: pure %v", once, g.Pure(0))
		}
	}
}

func TestOpaqueErrors(t *testing.T) {
	for _, c := range []struct {
		name  string
		spoil func(g *Graph)
		want  string
	}{
		{"update of what it does not read", func(g *Graph) { g.Ops[0].Inputs = []TensorID{0} },
			"output w must be a fresh storage, not version 1 of w"},
		{"update of a part as another shape", func(g *Graph) { g.Tensors[3].Shape = Shape{1} },
			"output w must be a fresh storage"},
		{"negative arithmetic", func(g *Graph) { g.Ops[0].Attrs.FLOPs = -1 }, "op any: flops -1 must not be negative"},
		{"attribute of another kind", func(g *Graph) { g.Ops[0].Attrs.Rate = 0.5 }, "op any: has no attribute rate"},
	} {
		g := opaqueGraph()
		c.spoil(g)
		if err := g.Validate(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one with %q", c.name, err, c.want)
		}
	}
	b := NewBuilder("b")
	b.Op("o", Opaque, Attrs{}, b.Input("x", Anything, Float32, Shape{1}))
	if err := b.Err(); err == nil || !strings.Contains(err.Error(), "what it makes does not follow from its inputs") {
		t.Errorf("error %v", err)
	}
}
