package kernel

import (
	"math"

	"tensile/device/cpu/gemm"
	"tensile/device/cpu/vector"
)

// unary is the kernel of an elementwise kind of one operand.
func unary[T gemm.Float](of func(y, x []T)) func(c *Call[T]) {
	return func(c *Call[T]) { of(c.Out[0], c.In[0]) }
}

// logarithm: x -> the natural logarithm of x.
func logarithm[T gemm.Float](c *Call[T]) {
	x, y := c.In[0], c.Out[0]
	y = y[:len(x)]
	for i, v := range x {
		y[i] = T(math.Log(float64(v)))
	}
}

// geluDX: x dy -> dx.
func geluDX[T gemm.Float](c *Call[T]) { vector.GELUGrad(c.Out[0], c.In[0], c.In[1]) }

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
