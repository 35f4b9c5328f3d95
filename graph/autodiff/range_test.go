package autodiff

import (
	"testing"

	"tensile/graph"
)

// Each operand of a concat has a slice of the gradient, unless nothing wants it.
func TestConcat(t *testing.T) {
	d := newDraft()
	x, w, v := d.input("x", 2, 3), d.param("w", 2, 1), d.param("v", 2, 2)
	y := d.Op("cat", graph.Concat, graph.Attrs{Dim: 1}, w, x, v, w)[0]
	expect(t, d.appended(t, d.loss(y)),
		"softmax_xent_dx loss.1 labels -> loss.dx",
		"slice loss.dx -> cat.dx0",
		"slice loss.dx -> cat.dx2",
		"slice loss.dx -> cat.dx3",
		"add cat.dx0 cat.dx3 -> w.grad2",
		"w: w.grad2", "v: cat.dx2",
	)
	want := map[string]graph.Attrs{"cat.dx0": {Dim: 1, Length: 1}, "cat.dx2": {Dim: 1, Begin: 4, Length: 2},
		"cat.dx3": {Dim: 1, Begin: 6, Length: 1}}
	for _, op := range d.Peek().Ops {
		if attrs, ok := want[op.Name]; ok && op.Attrs != attrs {
			t.Errorf("op %s has %+v, want %+v", op.Name, op.Attrs, attrs)
		}
	}
}

// A tensor cut into parts has one gradient: the first part to arrive is padded, further ones are added in place,
// through a view where the tensor was cut in another shape.
func TestSlices(t *testing.T) {
	d := newDraft()
	w := d.op("sq", graph.Mul, d.param("w", 3, 4), d.input("x", 3, 4))
	c := d.Op("c", graph.Slice, graph.Attrs{Dim: 1, Begin: 1, Length: 3}, d.View("wide", w, 0, graph.Shape{2, 6}))[0]
	a := d.Op("a", graph.Slice, graph.Attrs{Dim: 1, Length: 2}, w)[0]
	b := d.Op("b", graph.Slice, graph.Attrs{Dim: 1, Begin: 1, Length: 2}, w)[0]
	y := d.op("sum", graph.Add, d.op("ab", graph.Mul, a, b), d.View("tall", c, 0, graph.Shape{3, 2}))
	expect(t, d.appended(t, d.loss(y)),
		"softmax_xent_dx loss.1 labels -> loss.dx",
		"mul loss.dx b -> ab.da",
		"mul loss.dx a -> ab.db",
		"slice_dx ab.db -> b.dx",
		"slice_accumulate b.dx ab.da -> b.dx",
		"slice_accumulate b.dx[2,6] loss.dx[2,3] -> b.dx[2,6]",
		"mul b.dx[3,4] x -> sq.da",
		"w: sq.da",
	)
}

// A gradient that something else may read is not added to in place: the first range makes a sum of its own.
func TestSliceOfSharedGradient(t *testing.T) {
	d := newDraft()
	w := d.op("sq", graph.Mul, d.param("w", 2, 2), d.input("x", 2, 2))
	v := d.op("id", graph.Mul, d.param("v", 2, 2), d.input("z", 2, 2))
	a := d.Op("a", graph.Slice, graph.Attrs{Dim: 1, Length: 1}, w)[0]
	b := d.Op("b", graph.Slice, graph.Attrs{Dim: 1, Begin: 1, Length: 1}, w)[0]
	both := d.Op("both", graph.Concat, graph.Attrs{Dim: 1}, b, a)[0]
	y := d.op("y", graph.Add, d.op("sum", graph.Add, w, v), both)
	expect(t, d.appended(t, d.loss(y)),
		"softmax_xent_dx loss.1 labels -> loss.dx",
		"slice loss.dx -> both.dx0",
		"slice loss.dx -> both.dx1",
		"slice_dx both.dx0 -> b.dx",
		"add loss.dx b.dx -> sq.grad2",
		"slice_accumulate sq.grad2 both.dx1 -> sq.grad2",
		"mul loss.dx z -> id.da",
		"mul sq.grad2 x -> sq.da",
		"w: sq.da", "v: id.da",
	)
}
