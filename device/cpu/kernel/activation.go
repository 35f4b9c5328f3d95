package kernel

import (
	"math"

	"tensile/device/cpu/gemm"
)

// unary is the kernel of an elementwise kind of one operand.
func unary[T gemm.Float](of func(x float64) float64) func(c *Call[T]) {
	return func(c *Call[T]) {
		x, y := c.In[0], c.Out[0]
		y = y[:len(x)]
		for i, v := range x {
			y[i] = T(of(float64(v)))
		}
	}
}

// binary is the kernel of an elementwise kind of two operands.
func binary[T gemm.Float](of func(a, b float64) float64) func(c *Call[T]) {
	return func(c *Call[T]) {
		a, b, y := c.In[0], c.In[1], c.Out[0]
		b, y = b[:len(a)], y[:len(a)]
		for i, v := range a {
			y[i] = T(of(float64(v), float64(b[i])))
		}
	}
}

// normalCDF is the distribution function of the standard normal distribution.
func normalCDF(x float64) float64 { return 0.5 * math.Erfc(-x/math.Sqrt2) }

// gelu is x·Φ(x).
func gelu(x float64) float64 { return x * normalCDF(x) }

// geluDX is the slope Φ(x) + x·φ(x), times dy.
func geluDX(x, dy float64) float64 {
	density := math.Exp(-x*x/2) / math.Sqrt(2*math.Pi)
	return dy * (normalCDF(x) + x*density)
}

func sigmoid(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

func sigmoidDX(y, dy float64) float64 { return dy * y * (1 - y) }

func tanhDX(y, dy float64) float64 { return dy * (1 - y*y) }

// blend: t a b -> t*a + (1-t)*b.
func blend[T gemm.Float](c *Call[T]) {
	t, a, b, y := c.In[0], c.In[1], c.In[2], c.Out[0]
	a, b, y = a[:len(t)], b[:len(t)], y[:len(t)]
	for i, v := range t {
		y[i] = v*a[i] + (1-v)*b[i]
	}
}

// blendGrad: t a b dy -> dt da db.
func blendGrad[T gemm.Float](c *Call[T]) {
	t, a, b, dy := c.In[0], c.In[1], c.In[2], c.In[3]
	dt, da, db := c.Out[0], c.Out[1], c.Out[2]
	for i, d := range dy {
		if dt != nil {
			dt[i] = d * (a[i] - b[i])
		}
		if da != nil {
			da[i] = d * t[i]
		}
		if db != nil {
			db[i] = d * (1 - t[i])
		}
	}
}
