package devicetest

import "tensile/graph"

// arithmetic passes y[3,16] through every kind of arithmetic.
func (z *zoo) arithmetic(y graph.TensorID) graph.TensorID {
	none := graph.Attrs{}
	shape := z.Shape(y)
	y = z.addOp("exp", graph.Exp, none, z.addOp("erf", graph.Erf, none, y))
	y = z.addOp("log", graph.Log, none, z.addOp("affine", graph.Affine, graph.Attrs{Factor: 0.5, Shift: 1}, y))
	y = z.addOp("power", graph.Power, graph.Attrs{Exponent: 1.5}, y)
	whole := z.View("whole", y, 0, graph.Shape{1, shape[0], shape[1]})
	rows := z.addOp("rows of sums", graph.Expand, graph.Attrs{Extent: [2]int{shape[0]}},
		z.addOp("sums", graph.SumOver, none, whole))
	return z.View("arithmetic", rows, 0, shape)
}
