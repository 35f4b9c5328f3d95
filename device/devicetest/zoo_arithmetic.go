package devicetest

import "tensile/graph"

// arithmetic passes y[3,16] through every kind of arithmetic.
func (z *zoo) arithmetic(y graph.TensorID) graph.TensorID {
	none := graph.Attrs{}
	shape := z.Shape(y)
	y = z.one("exp", graph.Exp, none, z.one("erf", graph.Erf, none, y))
	y = z.one("log", graph.Log, none, z.one("affine", graph.Affine, graph.Attrs{Factor: 0.5, Shift: 1}, y))
	y = z.one("power", graph.Power, graph.Attrs{Exponent: 1.5}, y)
	whole := z.View("whole", y, 0, graph.Shape{1, shape[0], shape[1]})
	rows := z.one("rows of sums", graph.Expand, graph.Attrs{Extent: [2]int{shape[0]}},
		z.one("sums", graph.SumOver, none, whole))
	return z.View("arithmetic", rows, 0, shape)
}
