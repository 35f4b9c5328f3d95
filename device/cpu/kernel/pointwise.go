package kernel

import (
	"tensile/device/cpu/gemm"
	"tensile/device/cpu/vector"
)

// relu: x -> y. NaN stays NaN.
func relu[T gemm.Float](c *Call[T]) { vector.ReLU(c.Out[0], c.In[0]) }

// reluDX: x y dy -> dx: dy where y is positive.
func reluDX[T gemm.Float](c *Call[T]) { vector.KeepPositive(c.Out[0], c.In[1], c.In[2]) }

// reluYDX: y dy -> dx: dy where y is positive.
func reluYDX[T gemm.Float](c *Call[T]) { vector.KeepPositive(c.Out[0], c.In[0], c.In[1]) }

// add: a b -> a+b.
func add[T gemm.Float](c *Call[T]) { vector.Add(c.Out[0], c.In[0], c.In[1]) }

// mul: a b -> a*b.
func mul[T gemm.Float](c *Call[T]) { vector.Multiply(c.Out[0], c.In[0], c.In[1]) }

// accumulate: a b -> a+b, in place in a.
func accumulate[T gemm.Float](c *Call[T]) {
	a := c.updated(0, 0)
	vector.Add(a, a, c.In[1])
}

// scale: a -> a*Factor, in place.
func scale[T gemm.Float](c *Call[T]) {
	a := c.updated(0, 0)
	vector.Scale(a, a, T(c.Attrs.Factor))
}
