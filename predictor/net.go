package predictor

import (
	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"
)

// layer is an affine map of In values to Out.
type layer struct {
	In  int       `json:"in"`
	Out int       `json:"out"`
	W   []float32 `json:"-"` // In x Out, row-major
	B   []float32 `json:"-"`
}

// forwardPass applies the layers to rows of x, with a rectifier between them, and returns a row of the last layer's
// values each.
func forwardPass(layers []layer, x []float32, rows int) []float32 {
	for l, a := range layers {
		y := make([]float32, rows*a.Out)
		for r := range rows {
			copy(y[r*a.Out:], a.B)
		}
		blas32.Gemm(blas.NoTrans, blas.NoTrans, 1, blas32.General{Rows: rows, Cols: a.In, Stride: a.In, Data: x},
			blas32.General{Rows: a.In, Cols: a.Out, Stride: a.Out, Data: a.W}, 1,
			blas32.General{Rows: rows, Cols: a.Out, Stride: a.Out, Data: y})
		if l+1 < len(layers) {
			for i, v := range y {
				y[i] = max(v, 0)
			}
		}
		x = y
	}
	return x
}
