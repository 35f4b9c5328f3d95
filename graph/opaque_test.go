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

// recordedGraph is of what a script did: w of 4 bytes is updated by an a of 9 bytes, which something holds to the end.
func recordedGraph() *Graph {
	return &Graph{Name: "recorded",
		Storages: []Storage{{ID: 0, Name: "w", Role: Parameter, Bytes: 5},
			{ID: 1, Name: "a", Role: Activation, Bytes: 9, Until: 2}},
		Tensors: []Tensor{{ID: 0, Name: "w", Storage: 0, Shape: Shape{5}, DType: Uint8},
			{ID: 1, Name: "a", Storage: 1, Shape: Shape{9}, DType: Uint8},
			{ID: 2, Name: "w", Storage: 0, Version: 1, Shape: Shape{5}, DType: Uint8}},
		Ops: []Op{{ID: 0, Name: "make", Kind: Opaque, Inputs: []TensorID{0}, Outputs: []TensorID{1},
			Attrs: Attrs{Scratch: 7}, Phase: Forward, Forward: NoOp},
			{ID: 1, Name: "update", Kind: Opaque, Inputs: []TensorID{0, 1}, Outputs: []TensorID{2},
				Attrs: Attrs{Scratch: 3}, Phase: Optimize, Forward: NoOp}}}
}

// TestRecorded shows what graphs of opaque ops alone may have, what an op that runs again needs, what digests see.
func TestRecorded(t *testing.T) {
	g := recordedGraph()
	if err := g.Validate(); err != nil {
		t.Fatal(err)
	}
	if first, again := g.Scratch(0, false), g.Scratch(0, true); first != 7 || again != 16 {
		t.Errorf("making a takes %d bytes of scratch, again %d; want 7, 16", first, again)
	}
	if again := g.Scratch(1, true); again != 3 {
		t.Errorf("an update in place takes %d bytes of scratch, want 3", again)
	}
	for _, c := range []struct {
		name, want string // want "": no error, and another digest
		change     func(*Graph)
	}{
		{"held for less", "", func(g *Graph) { g.Storages[1].Until = 0 }},
		{"other scratch", "", func(g *Graph) { g.Ops[0].Attrs.Scratch = 8 }},
		{"held too short", "until one after op 1", func(g *Graph) { g.Storages[1].Until = 1 }},
		{"held too long", "up to 2", func(g *Graph) { g.Storages[1].Until = 3 }},
		{"a parameter held", "activations and gradients alone", func(g *Graph) { g.Storages[0].Until = 2 }},
		{"no bytes", "not from 1", func(g *Graph) { g.Storages[1].Bytes = 0 }},
		{"scratch below 0", "scratch -1", func(g *Graph) { g.Ops[0].Attrs.Scratch = -1 }},
		{"an op of a known kind", "init", func(g *Graph) { g.Ops[1].Kind = ReLU }},
	} {
		other := recordedGraph()
		c.change(other)
		err := other.Validate()
		switch {
		case c.want == "" && (err != nil || other.Digest() == g.Digest()):
			t.Errorf("%s: error %v, or the digest is the same", c.name, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: error %v, want one with %q", c.name, err, c.want)
		}
	}
}
