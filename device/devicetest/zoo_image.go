package devicetest

import "tensile/graph"

var (
	across = graph.Attrs{Length: 3, Factor: 0.1, Exponent: 0.75, Epsilon: 1}
	inset  = graph.Attrs{Pad: [2]int{1, -1}, Extent: [2]int{4, 4}}
	outset = graph.Attrs{Pad: [2]int{-1, 1}, Extent: [2]int{4, 4}}
)

// blur normalises x[2,4,4,4] over channels and moves it by a pixel.
func (z *zoo) blur(x graph.TensorID) graph.TensorID {
	return z.addOp("moved", graph.Pad, inset, z.addOp("lrn", graph.LRN, across, x))
}

// blurGrad is the gradient of a blur that made y, with y in place of what its normalisation read and made.
func (z *zoo) blurGrad(y, dy graph.TensorID) graph.TensorID {
	return z.addOp("dlrn", graph.LRNDX, across, y, y, z.addOp("dmoved", graph.Pad, outset, dy))
}
