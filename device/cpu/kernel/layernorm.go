package kernel

import (
	"tensile/device/cpu/gemm"
	"tensile/device/cpu/vector"
)

// layerNorm: x gamma beta -> y mean scale, by rows.
func layerNorm[T gemm.Float](c *Call[T]) {
	x, gamma, beta := c.In[0], c.In[1], c.In[2]
	y, mean, scale := c.Out[0], c.Out[1], c.Out[2]
	n, d := c.InShapes[0][0], float64(len(gamma))
	for r := range n {
		row := item(x, r, n)
		centre := vector.Sum(row) / d
		inverse := inverseDeviation(vector.SumSquares(row, centre)/d, c.Attrs.Epsilon)
		if mean != nil {
			mean[r] = T(centre)
		}
		if scale != nil {
			scale[r] = T(inverse)
		}
		if y == nil {
			continue
		}
		to := item(y, r, n)
		near := T(centre) // and the rest of the mean, which a large one loses much of
		vector.Normalise(to, row, near, T(inverse), T((float64(near)-centre)*inverse))
		vector.Multiply(to, to, gamma)
		vector.Add(to, to, beta)
	}
}

// layerNormGrad: x mean scale gamma dy -> dx dgamma dbeta. With x' the normalised input, g = gamma·dy and means over a
// row, dx = scale·(g - mean(g) - x'·mean(g·x')). dgamma and dbeta add up the rows in their order.
func layerNormGrad[T gemm.Float](c *Call[T]) {
	x, mean, scale, gamma, dy := c.In[0], c.In[1], c.In[2], c.In[3], c.In[4]
	dx, dgamma, dbeta := c.Out[0], c.Out[1], c.Out[2]
	clear(dgamma)
	clear(dbeta)
	n, width := c.InShapes[0][0], len(gamma)
	c.split(width, 2*n, func(first, end int) {
		room := make([]T, min(end-first, chunk))
		for r := range n {
			row, grad := item(x, r, n), item(dy, r, n)
			if dbeta != nil {
				vector.Add(dbeta[first:end], dbeta[first:end], grad[first:end])
			}
			for from := first; from < end && dgamma != nil; from += chunk {
				to := min(from+chunk, end)
				v := room[:to-from]
				vector.Normalise(v, row[from:to], mean[r], scale[r], 0)
				vector.Multiply(v, v, grad[from:to])
				vector.Add(dgamma[from:to], dgamma[from:to], v)
			}
		}
	})
	if dx != nil { // at the end, as it may be dy's memory
		c.split(n, 4*width, func(first, end int) {
			room := make([]T, min(width, chunk))
			for r := first; r < end; r++ {
				layerNormRow(item(dx, r, n), item(x, r, n), item(dy, r, n), gamma, float64(mean[r]), float64(scale[r]),
					room)
			}
		})
	}
}

// chunk is how many elements of a row are multiplied before they are read again, and are in the nearest cache then.
const chunk = 1024

// layerNormRow writes a row of dx. room holds a chunk.
func layerNormRow[T gemm.Float](dx, x, dy, gamma []T, mean, scale float64, room []T) {
	var total, product float64
	g := func(from int) (g []T, to int) { // gamma·dy
		to = min(from+chunk, len(x))
		g = room[:to-from]
		vector.Multiply(g, gamma[from:to], dy[from:to])
		return g, to
	}
	for from := 0; from < len(x); from += chunk {
		g, to := g(from)
		t, p := vector.SumProducts(x[from:to], g, mean)
		total, product = total+t, product+p
	}
	d := float64(len(x))
	for from := 0; from < len(x); from += chunk {
		g, to := g(from)
		vector.NormaliseGrad(dx[from:to], x[from:to], g, T(mean), T(product/d*scale*scale), T(total/d), T(scale))
	}
}
