package autodiff

import "tensile/graph"

// pad moves the gradient back and crops what was padding; what was cropped gets zeros.
func pad(w *walk, dy []graph.TensorID) {
	shape := w.b.Shape(w.op.Inputs[0])
	a := w.op.Attrs
	attrs := graph.Attrs{Pad: [2]int{-a.Pad[0], -a.Pad[1]}, Extent: [2]int{shape[2], shape[3]}}
	w.give(0, w.emit("dx", graph.Pad, attrs, dy[0]))
}

// sliceDX pads with zeros along a dimension; its gradient is what it padded.
func sliceDX(w *walk, dy []graph.TensorID) {
	a := w.op.Attrs
	w.give(0, w.emit("dx", graph.Slice, graph.Attrs{Dim: a.Dim, Begin: a.Begin, Length: a.Length}, dy[0]))
}
