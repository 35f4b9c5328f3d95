package kernel

import (
	"tensile/device/cpu/gemm"
	"tensile/graph"
)

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

// linearDW: x dy -> dw, dw = dyᵀ·x, or some rows of it, a product for each tile.
func linearDW[T gemm.Float](c *Call[T]) {
	x, dy, dw := c.In[0], c.In[1], c.Out[0]
	n, i, o, rows := c.InShapes[0][0], c.InShapes[0][1], c.InShapes[1][1], c.OutShapes[0][0]
	tile := graph.Shape{o, i}.TileRows()
	for row := 0; row < rows; row += tile {
		gemm.Multiply(c.GEMM, gemm.Product[T]{
			M: min(tile, rows-row), N: i, K: n,
			A: gemm.Matrix[T]{Data: dy[c.Attrs.Begin+row:], Stride: o, Transposed: true},
			B: gemm.Matrix[T]{Data: x, Stride: i},
			C: gemm.Matrix[T]{Data: dw[row*i:], Stride: i},
		})
	}
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
