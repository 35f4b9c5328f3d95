package kernels

import "tensile/graph"

var products = map[graph.Kind]entry{
	graph.Linear:   made(linear),
	graph.LinearDW: made(linearDW),
	graph.LinearDX: made(linearDX),
	graph.MatMul:   made(matmul),
}

// linear: x w (b) -> y, y = x·wᵀ plus the bias.
func linear(c *Call) []product {
	n, i, o := c.InShapes[0][0], c.InShapes[0][1], c.InShapes[1][0]
	p := plain("product_nt", n, o, i, c.In[0], i, c.In[1], i, c.Out[0])
	if len(c.In) == 3 {
		p.c.bias = c.In[2]
	}
	return []product{p}
}

// linearDW: x dy -> dw, dw = dyᵀ·x, or some rows of it, a product for each tile of the gradient.
func linearDW(c *Call) (all []product) {
	n, i, o, rows := c.InShapes[0][0], c.InShapes[0][1], c.InShapes[1][1], c.OutShapes[0][0]
	tile := graph.Shape{o, i}.TileRows()
	for row := 0; row < rows; row += tile {
		all = append(all, plain("product_tn", min(tile, rows-row), i, n,
			floats(c.In[1], c.Attrs.Begin+row), o, c.In[0], i, floats(c.Out[0], row*i)))
	}
	return all
}

// linearDX: dy w -> dx, dx = dy·w.
func linearDX(c *Call) []product {
	n, o, i := c.InShapes[0][0], c.InShapes[0][1], c.InShapes[1][1]
	return []product{plain("product_nn", n, i, o, c.In[0], o, c.In[1], i, c.Out[0])}
}

// matmul: a b -> y, a product for each entry of the batch.
func matmul(c *Call) []product {
	a, b, y := c.InShapes[0], c.InShapes[1], c.OutShapes[0]
	kernel, k := "product_", a[2]
	if c.Attrs.TransposeA {
		kernel, k = kernel+"t", a[1]
	} else {
		kernel += "n"
	}
	if c.Attrs.TransposeB {
		kernel += "t"
	} else {
		kernel += "n"
	}
	p := plain(kernel, y[1], y[2], k, c.In[0], a[2], c.In[1], b[2], c.Out[0])
	p.batch = y[0]
	p.a.batch, p.b.batch, p.c.batch = a[1]*a[2], b[1]*b[2], y[1]*y[2]
	return []product{p}
}

// plain is a product of two matrices that are stored with these strides.
func plain(kernel string, m, n, k int, a uint64, aStride int, b uint64, bStride int, c uint64) product {
	return product{
		kernel: kernel, m: m, n: n, k: k, batch: 1,
		a: matrix{address: a, stride: aStride}, b: matrix{address: b, stride: bStride}, kPlane: none, nPlane: none,
		c: target{address: c, stride: n, plane: none},
	}
}

// floats is the address of element i at an address.
func floats(address uint64, i int) uint64 { return address + 4*uint64(i) }
