package kernel

import "tensile/device/cpu/gemm"

// A depthwise convolution has groups of one channel, which k filters read. Matrix products of so few rows would spend
// their time on laying out columns, so these kernels go over the planes as they are: per output row and weight of a
// filter, one run over the part of an input row that the weight meets.

// planes returns the input's plane of group n (of all images), the output's plane of its filter k, and the filter.
func (g *convolution) planes(n, k int) (in, out, filter int) {
	return n, n*g.k + k, n%g.groups*g.k + k
}

// meets returns the input row that weight row r meets at output row p, if there is one.
func (g *convolution) meets(p, r int) (h int, ok bool) {
	h = p*g.stride[0] - g.pad[0] + r
	return h, h >= 0 && h < g.h
}

// depthwise: x w (b) -> y.
func depthwise[T gemm.Float](c *Call[T], g *convolution) {
	count := g.n * g.groups
	c.eachOf(count, g.k*g.p*g.q*g.r, func(n int) {
		for k := range g.k {
			in, out, filter := g.planes(n, k)
			x, y, w := item(c.In[0], in, count), item(c.Out[0], out, count*g.k), item(c.In[1], filter, g.groups*g.k)
			var bias T
			if len(c.In) == 3 {
				bias = c.In[2][filter]
			}
			fill(y, bias)
			for p := range g.p {
				for r := range g.r {
					if h, ok := g.meets(p, r); ok {
						filterRow(g, y[p*g.q:][:g.q], x[h*g.w:][:g.w], w[r*g.s:][:g.s])
					}
				}
			}
		}
	})
}

// filterRow adds to a row of y what the weights of one filter row make of a row of x.
func filterRow[T gemm.Float](g *convolution, y, x, w []T) {
	for s, weight := range w {
		from, to := g.validColumns(s)
		if from >= to {
			continue
		}
		y, x := y[from:to], x[from*g.stride[1]-g.pad[1]+s:]
		if g.stride[1] == 1 {
			x = x[:len(y)]
			for i, v := range x {
				y[i] += weight * v
			}
			continue
		}
		for i := range y {
			y[i] += weight * x[i*g.stride[1]]
		}
	}
}

// depthwiseDW: x dy -> dw, each weight a sum over images and output rows in order.
func depthwiseDW[T gemm.Float](c *Call[T], g *convolution) {
	count := g.n * g.groups
	clear(c.Out[0])
	c.eachOf(g.groups*g.k, g.n*g.p*g.q*g.r, func(filter int) {
		dw := item(c.Out[0], filter, g.groups*g.k)
		for image := range g.n {
			in, out, _ := g.planes(image*g.groups+filter/g.k, filter%g.k)
			x, dy := item(c.In[0], in, count), item(c.In[1], out, count*g.k)
			for p := range g.p {
				for r := range g.r {
					if h, ok := g.meets(p, r); ok {
						filterRowDW(g, dw[r*g.s:][:g.s], x[h*g.w:][:g.w], dy[p*g.q:][:g.q])
					}
				}
			}
		}
	})
}

// filterRowDW adds to the gradient of one filter row what a row of x and one of dy give.
func filterRowDW[T gemm.Float](g *convolution, dw, x, dy []T) {
	for s := range dw {
		from, to := g.validColumns(s)
		if from >= to {
			continue
		}
		dy, x := dy[from:to], x[from*g.stride[1]-g.pad[1]+s:]
		if g.stride[1] == 1 {
			dw[s] += product(dy, x[:len(dy)])
			continue
		}
		var total T
		for i, v := range dy {
			total += v * x[i*g.stride[1]]
		}
		dw[s] += total
	}
}

// product is the sum of x*y, in four interleaved strands.
func product[T gemm.Float](x, y []T) T {
	var s0, s1, s2, s3 T
	for ; len(x) >= 4 && len(y) >= 4; x, y = x[4:], y[4:] {
		s0 += x[0] * y[0]
		s1 += x[1] * y[1]
		s2 += x[2] * y[2]
		s3 += x[3] * y[3]
	}
	for i, v := range x {
		s0 += v * y[i]
	}
	return (s0 + s1) + (s2 + s3)
}

// depthwiseDX: dy w -> dx.
func depthwiseDX[T gemm.Float](c *Call[T], g *convolution) {
	count := g.n * g.groups
	c.eachOf(count, g.k*g.p*g.q*g.r, func(n int) {
		clear(item(c.Out[0], n, count))
		for k := range g.k {
			in, out, filter := g.planes(n, k)
			dx, dy, w := item(c.Out[0], in, count), item(c.In[0], out, count*g.k), item(c.In[1], filter, g.groups*g.k)
			for p := range g.p {
				for r := range g.r {
					if h, ok := g.meets(p, r); ok {
						filterRowDX(g, dx[h*g.w:][:g.w], dy[p*g.q:][:g.q], w[r*g.s:][:g.s])
					}
				}
			}
		}
	})
}

// filterRowDX adds to a row of dx what the weights of one filter row pass on of a row of dy.
func filterRowDX[T gemm.Float](g *convolution, dx, dy, w []T) {
	for s, weight := range w {
		from, to := g.validColumns(s)
		if from >= to {
			continue
		}
		dy, dx := dy[from:to], dx[from*g.stride[1]-g.pad[1]+s:]
		if g.stride[1] == 1 {
			dx = dx[:len(dy)]
			for i, v := range dy {
				dx[i] += weight * v
			}
			continue
		}
		for i, v := range dy {
			dx[i*g.stride[1]] += weight * v
		}
	}
}
