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
		row, to = row[:len(gamma)], to[:len(gamma)]
		for i, g := range gamma {
			to[i] = T((float64(row[i])-centre)*inverse)*g + beta[i]
		}
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
		for r := range n {
			from, grad := item(x, r, n)[first:end], item(dy, r, n)[first:end]
			if dbeta != nil {
				vector.Add(dbeta[first:end], dbeta[first:end], grad)
			}
			if dgamma != nil {
				for i, g := range grad {
					dgamma[first+i] += g * ((from[i] - mean[r]) * scale[r])
				}
			}
		}
	})
	if dx != nil { // at the end, as it may be dy's memory
		c.eachOf(n, 2*width, func(r int) {
			layerNormRow(item(dx, r, n), item(x, r, n), item(dy, r, n), gamma, float64(mean[r]), float64(scale[r]))
		})
	}
}

// layerNormRow writes a row of dx.
func layerNormRow[T gemm.Float](dx, x, dy, gamma []T, mean, scale float64) {
	var total, product float64
	for i, g := range gamma {
		v := float64(g) * float64(dy[i])
		total += v
		product += v * (float64(x[i]) - mean) * scale
	}
	d := float64(len(gamma))
	total, product = total/d, product/d
	for i, g := range gamma {
		dx[i] = T(scale * (float64(g)*float64(dy[i]) - total - (float64(x[i])-mean)*scale*product))
	}
}
