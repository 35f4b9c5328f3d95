package autodiff

import (
	"fmt"
	"slices"

	"tensile/graph"
)

// concat gives each operand its range of the gradient.
func concat(w *walk, dy []graph.TensorID) {
	attrs := graph.Attrs{Dim: w.op.Attrs.Dim}
	for i, in := range w.op.Inputs {
		attrs.Length = w.b.Shape(in)[attrs.Dim]
		if w.inputNeedsGradient(i) {
			w.give(i, w.emit(fmt.Sprintf("dx%d", i), graph.Slice, attrs, dy[0]))
		}
		attrs.Begin += attrs.Length
	}
}

// slice adds the gradient to a range of the gradient of what was cut. The first range to arrive makes the whole, of
// zeros elsewhere; further ones are added in place, so that a tensor cut into many parts has one gradient and not one a
// part.
func slice(w *walk, dy []graph.TensorID) {
	if !w.inputNeedsGradient(0) {
		return
	}
	in := w.g.Tensors[w.op.Inputs[0]]
	attrs := w.op.Attrs
	c := w.contentOf(in.ID)
	if s := &c.sum; s.own && in.Bytes() == w.g.Tensors[c.base].Bytes() {
		shape := w.b.Shape(s.tensor)
		whole := w.shown(s.tensor, in.Shape)
		s.tensor = w.shown(w.emit("dx", graph.SliceAccumulate, attrs, whole, dy[0]), shape)
		s.terms++
		return
	}
	attrs.Extent = [2]int{in.Shape[attrs.Dim]}
	w.give(0, w.emit("dx", graph.SliceDX, attrs, dy[0]))
	c.sum.own = true
}

// shown returns d in this shape: d itself, or a view of it.
func (w *walk) shown(d graph.TensorID, shape graph.Shape) graph.TensorID {
	if slices.Equal(w.b.Shape(d), shape) {
		return d
	}
	return w.b.View(w.g.Tensors[d].Name+".view", d, 0, shape)
}
