package devicetest

import "tensile/graph"

// cut joins x[2,4,4,4] with itself and takes the middle half.
func (z *zoo) cut(x graph.TensorID) graph.TensorID {
	both := z.addOp("both", graph.Concat, graph.Attrs{Dim: 1}, x, x)
	return z.addOp("middle", graph.Slice, graph.Attrs{Dim: 1, Begin: 2, Length: 4}, both)
}

// cutGrad is the gradient of cut. Half of dy is added twice, so that its gradient has a range that is updated in place.
func (z *zoo) cutGrad(dy graph.TensorID) graph.TensorID {
	dboth := z.addOp("dboth", graph.SliceDX, graph.Attrs{Dim: 1, Begin: 2, Length: 4, Extent: [2]int{8}}, dy)
	half := z.addOp("dmiddle", graph.Slice, graph.Attrs{Dim: 1, Length: 2}, dy)
	dboth = z.addOp("dboth more", graph.SliceAccumulate, graph.Attrs{Dim: 1, Begin: 2, Length: 2}, dboth, half)
	a := z.addOp("da", graph.Slice, graph.Attrs{Dim: 1, Length: 4}, dboth)
	return z.addOp("dcut", graph.Add, graph.Attrs{}, a, z.addOp("db2", graph.Slice, graph.Attrs{Dim: 1, Begin: 4,
		Length: 4}, dboth))
}
