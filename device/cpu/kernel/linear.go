package kernel

import "tensile/device/cpu/gemm"

// linear: x w (b) -> y, y = x·wᵀ on top of the bias.
func linear[T gemm.Float](c *Call[T]) {
	x, w, y := c.In[0], c.In[1], c.Out[0]
	n, i, o := c.InShapes[0][0], c.InShapes[0][1], c.InShapes[1][0]
	if len(c.In) == 3 {
		for r := range n {
			copy(item(y, r, n), c.In[2])
		}
	}
	gemm.Multiply(c.GEMM, gemm.Product[T]{
		M: n, N: o, K: i,
		A:   gemm.Matrix[T]{Data: x, Stride: i},
		B:   gemm.Matrix[T]{Data: w, Stride: i, Transposed: true},
		C:   gemm.Matrix[T]{Data: y, Stride: o},
		Add: len(c.In) == 3,
	})
}

// linearDW: x dy -> dw, dw = dyᵀ·x.
func linearDW[T gemm.Float](c *Call[T]) {
	x, dy, dw := c.In[0], c.In[1], c.Out[0]
	n, i, o := c.InShapes[0][0], c.InShapes[0][1], c.InShapes[1][1]
	gemm.Multiply(c.GEMM, gemm.Product[T]{
		M: o, N: i, K: n,
		A: gemm.Matrix[T]{Data: dy, Stride: o, Transposed: true},
		B: gemm.Matrix[T]{Data: x, Stride: i},
		C: gemm.Matrix[T]{Data: dw, Stride: i},
	})
}

// linearDX: dy w -> dx, dx = dy·w.
func linearDX[T gemm.Float](c *Call[T]) {
	dy, w, dx := c.In[0], c.In[1], c.Out[0]
	n, o, i := c.InShapes[0][0], c.InShapes[0][1], c.InShapes[1][1]
	gemm.Multiply(c.GEMM, gemm.Product[T]{
		M: n, N: i, K: o,
		A: gemm.Matrix[T]{Data: dy, Stride: o},
		B: gemm.Matrix[T]{Data: w, Stride: i},
		C: gemm.Matrix[T]{Data: dx, Stride: i},
	})
}
