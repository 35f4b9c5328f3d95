package kernel

import (
	"math"

	"tensile/device/cpu/gemm"
)

// relu: x -> y. NaN stays NaN.
func relu[T gemm.Float](c *Call[T]) {
	x, y := c.In[0], c.Out[0]
	y = y[:len(x)]
	for i, v := range x {
		y[i] = max(v, 0)
	}
}

// reluDX: x y dy -> dx: dy where y is positive.
func reluDX[T gemm.Float](c *Call[T]) {
	y, dy, dx := c.In[1], c.In[2], c.Out[0]
	dy, dx = dy[:len(y)], dx[:len(y)]
	for i, v := range y {
		dx[i] = keepIf(v > 0, dy[i])
	}
}

// reluYDX: y dy -> dx: dy where y is positive.
func reluYDX[T gemm.Float](c *Call[T]) {
	y, dy, dx := c.In[0], c.In[1], c.Out[0]
	dy, dx = dy[:len(y)], dx[:len(y)]
	for i, v := range y {
		dx[i] = keepIf(v > 0, dy[i])
	}
}

// keepIf is v or zero, without a branch that random data would mispredict: integers are chosen by a conditional move.
func keepIf[T gemm.Float](keep bool, v T) T {
	bits, kept := math.Float64bits(float64(v)), uint64(0)
	if keep {
		kept = bits
	}
	return T(math.Float64frombits(kept))
}

// add: a b -> a+b.
func add[T gemm.Float](c *Call[T]) {
	a, b, y := c.In[0], c.In[1], c.Out[0]
	b, y = b[:len(a)], y[:len(a)]
	for i, v := range a {
		y[i] = v + b[i]
	}
}

// mul: a b -> a*b.
func mul[T gemm.Float](c *Call[T]) {
	a, b, y := c.In[0], c.In[1], c.Out[0]
	b, y = b[:len(a)], y[:len(a)]
	for i, v := range a {
		y[i] = v * b[i]
	}
}

// accumulate: a b -> a+b, in place in a.
func accumulate[T gemm.Float](c *Call[T]) {
	a, b := c.updated(0, 0), c.In[1]
	a = a[:len(b)]
	for i, v := range b {
		a[i] += v
	}
}

// scale: a -> a*Factor, in place.
func scale[T gemm.Float](c *Call[T]) {
	a, factor := c.updated(0, 0), T(c.Attrs.Factor)
	for i, v := range a {
		a[i] = v * factor
	}
}
