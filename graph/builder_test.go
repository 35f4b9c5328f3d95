package graph

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	_ "tensile/internal/long" // the flag -long
)

func TestBuilder(t *testing.T) {
	g := tiny(t)
	storages := []Storage{
		{ID: 0, Name: "x", Role: Input, Bytes: 24}, {ID: 1, Name: "labels", Role: Input, Bytes: 8},
		{ID: 2, Name: "w", Role: Parameter, Bytes: 48, Init: &Init{InitNormal, 0.5}},
		{ID: 3, Name: "fc", Role: Activation, Bytes: 32}, {ID: 4, Name: "relu", Role: Activation, Bytes: 32},
		{ID: 5, Name: "loss.0", Role: Output, Bytes: 4}, {ID: 6, Name: "loss.1", Role: Activation, Bytes: 32},
		{ID: 7, Name: "loss.dx", Role: Gradient, Bytes: 32}, {ID: 8, Name: "relu.dx", Role: Gradient, Bytes: 32},
		{ID: 9, Name: "fc.dw", Role: Gradient, Bytes: 48},
	}
	if diff := cmp.Diff(storages, g.Storages); diff != "" {
		t.Errorf("storages (-want +got):\n%s", diff)
	}
	update := Op{6, "w.update", SGD, []TensorID{2, 9}, []TensorID{10}, Attrs{LearningRate: 0.1}, Optimize, "loss", NoOp}
	if diff := cmp.Diff(update, g.Ops[6]); diff != "" {
		t.Errorf("update (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(Tensor{10, "w", 2, 1, 0, Shape{4, 3}, Float32}, g.Tensors[10]); diff != "" {
		t.Errorf("updated w (-want +got):\n%s", diff)
	}
	if op := g.Ops[4]; op.Phase != Backward || op.Forward != 1 {
		t.Errorf("relu.dx is of phase %s and belongs to op %d", op.Phase, op.Forward)
	}
}

func TestQuestions(t *testing.T) {
	g := tiny(t)
	if got := g.Parameters(); got != 12 {
		t.Errorf("%d parameters, want 12", got)
	}
	const update = 6
	for id := range g.Ops {
		if got, want := g.Pure(OpID(id)), id != update; got != want {
			t.Errorf("op %s: pure is %v", g.Ops[id].Name, got)
		}
	}
	if diff := cmp.Diff([]Version{{2, 0}, {9, 0}}, g.Reads(update)); diff != "" {
		t.Errorf("update reads (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]Version{{2, 1}}, g.Writes(update)); diff != "" {
		t.Errorf("update writes (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]StorageID{2, 9}, g.Touches(update)); diff != "" {
		t.Errorf("update touches (-want +got):\n%s", diff)
	}
	if got := g.WorkingSet(update); got != 96 {
		t.Errorf("working set of the update is %v, want 96", got)
	}
	if diff := cmp.Diff([]int{0, 0, 1, 0, 0, 0, 0, 0, 0, 0}, g.LastVersions()); diff != "" {
		t.Errorf("last versions (-want +got):\n%s", diff)
	}
	// relu.dx reads fc, relu and loss.dx, each 8 elements, and makes as many.
	if diff := cmp.Diff(Cost{FLOPs: 8, Bytes: 4 * 32}, g.Cost(4)); diff != "" {
		t.Errorf("cost of relu.dx (-want +got):\n%s", diff)
	}
	// fc: 2x4 outputs of 3 multiply-adds; x, w and y move.
	if diff := cmp.Diff(Cost{FLOPs: 48, Bytes: 24 + 48 + 32}, g.Cost(0)); diff != "" {
		t.Errorf("cost of fc (-want +got):\n%s", diff)
	}
}

func TestView(t *testing.T) {
	b := NewBuilder("views")
	x := b.Input("x", Anything, Float32, Shape{4, 6})
	rows := b.View("rows", x, 48, Shape{2, 6})
	last := b.View("last", rows, 24, Shape{6, 1})
	b.Op("relu", ReLU, Attrs{}, last)
	g, err := b.Graph()
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Validate(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Tensor{2, "last", 0, 0, 72, Shape{6, 1}, Float32}, g.Tensors[last]); diff != "" {
		t.Errorf("view of a view (-want +got):\n%s", diff)
	}
}

func TestBuilderErrors(t *testing.T) {
	tests := []struct {
		name  string
		build func(b *Builder, x TensorID)
		want  string
	}{
		{"persistent storage of another role", func(b *Builder, _ TensorID) {
			b.Persistent("s", Activation, Shape{1},
				Init{InitOne, 0})
		},
			"build broken: storage s: role activation is not persistent"},
		{"view past the end", func(b *Builder, x TensorID) { b.View("v", x, 4, Shape{2, 3}) },
			"view v: bytes 4 to 28 are outside of x (24 bytes)"},
		{"view before the start", func(b *Builder, x TensorID) { b.View("v", x, -4, Shape{1}) },
			"view v: bytes -4 to 0 are outside of x"},
		{"unknown kind", func(b *Builder, x TensorID) { b.Op("o", "sinh", Attrs{}, x) },
			`op o: unknown op kind "sinh"`},
		{"operands that do not fit", func(b *Builder, x TensorID) {
			b.Op("o", Linear, Attrs{}, x, b.Input("w", Anything, Float32, Shape{5, 4}))
		}, "op o: linear: w has shape [5 4], want [-1 3] (-1: any)"},
		{"too few operands", func(b *Builder, x TensorID) { b.Op("o", Add, Attrs{}, x) },
			"op o: add takes 2 inputs, got 1"},
		{"the first error stays", func(b *Builder, x TensorID) {
			y := b.Op("first", Add, Attrs{}, x)[0]
			z := b.Op("second", SoftmaxXent, Attrs{}, y)
			b.Op("third", Mul, Attrs{}, z[0], z[1])
		}, "op first: add takes"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			b := NewBuilder("broken")
			test.build(b, b.Input("x", Anything, Float32, Shape{2, 3}))
			g, err := b.Graph()
			if g != nil || err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want it to contain %q", err, test.want)
			}
			if b.Err() == nil {
				t.Error("Err returns nothing")
			}
		})
	}
}
