package kernel

import (
	"math"

	"tensile/device/cpu/gemm"
	"tensile/device/cpu/vector"
)

// affine: x -> x*Factor + Shift. The product is rounded before it is added to, on every machine.
func affine[T gemm.Float](c *Call[T]) {
	vector.Normalise(c.Out[0], c.In[0], 0, T(c.Attrs.Factor), T(c.Attrs.Shift))
}

// power: x -> x to the power Exponent.
func power[T gemm.Float](c *Call[T]) {
	x, y := c.In[0], c.Out[0]
	exponent := c.Attrs.Exponent
	y = y[:len(x)]
	for i, v := range x {
		y[i] = T(math.Pow(float64(v), exponent))
	}
}

// expand: x[A,C] -> y[A,N,C].
func expand[T gemm.Float](c *Call[T]) {
	x, y := c.In[0], c.Out[0]
	shape := c.OutShapes[0]
	for a := range shape[0] {
		row := x[a*shape[2]:][:shape[2]]
		for n := range shape[1] {
			copy(y[(a*shape[1]+n)*shape[2]:][:shape[2]], row)
		}
	}
}

// sumOver: x[A,N,C] -> y[A,C], in float64 and in the order of N, a few columns at a time.
func sumOver[T gemm.Float](c *Call[T]) {
	x, y := c.In[0], c.Out[0]
	shape := c.InShapes[0]
	var totals [64]float64
	for a := range shape[0] {
		if shape[2] == 1 {
			y[a] = T(vector.Sum(x[a*shape[1]:][:shape[1]]))
			continue
		}
		for first := 0; first < shape[2]; first += len(totals) {
			part := totals[:min(len(totals), shape[2]-first)]
			clear(part)
			for n := range shape[1] {
				for i, v := range x[(a*shape[1]+n)*shape[2]+first:][:len(part)] {
					part[i] += float64(v)
				}
			}
			for i, v := range part {
				y[a*shape[2]+first+i] = T(v)
			}
		}
	}
}
