package kernel

import (
	"unsafe"

	"tensile/device/cpu/gemm"
	"tensile/graph"
)

// pooling is the geometry of the pooling kinds: planes of h by w become planes of p by q.
type pooling struct {
	planes, h, w, p, q int
	kernel             [2]int
	stride             [2]int
	pad                [2]int
	inside             bool
}

func poolingOf(a graph.Attrs, x, y graph.Shape) pooling {
	return pooling{
		planes: x[0] * x[1], h: x[2], w: x[3], p: y[2], q: y[3],
		kernel: a.Kernel, stride: a.Stride, pad: a.Pad, inside: a.Inside,
	}
}

// window returns the part [from, to) of output i's window along a dimension of the given extent that is not padding.
// It is never empty, since padding is smaller than the kernel.
func (g *pooling) window(dimension, i, extent int) (from, to int) {
	from = i*g.stride[dimension] - g.pad[dimension]
	return max(0, from), min(extent, from+g.kernel[dimension])
}

// maxPool: x -> y. NaN wins.
func maxPool[T gemm.Float](c *Call[T]) {
	g := poolingOf(c.Attrs, c.InShapes[0], c.OutShapes[0])
	y := c.Out[0]
	for n := range g.planes {
		x := item(c.In[0], n, g.planes)
		for p := range g.p {
			top, bottom := g.window(0, p, g.h)
			for q := range g.q {
				left, right := g.window(1, q, g.w)
				y[0], y = largest(x, g.w, top, bottom, left, right), y[1:]
			}
		}
	}
}

// largest returns the window's largest element, or NaN.
func largest[T gemm.Float](x []T, width, top, bottom, left, right int) T {
	best := x[top*width+left]
	for h := top; h < bottom; h++ {
		for _, v := range x[h*width+left : h*width+right] {
			best = max(best, v)
		}
	}
	return best
}

// maxPoolDX: x y dy -> dx. Windows give their gradient in the order of y, each to the first element equal to y, and to
// none if y is NaN.
func maxPoolDX[T gemm.Float](c *Call[T]) {
	g := poolingOf(c.Attrs, c.InShapes[0], c.InShapes[1])
	clear(c.Out[0])
	i := 0
	for n := range g.planes {
		x, dx := item(c.In[0], n, g.planes), item(c.Out[0], n, g.planes)
		for p := range g.p {
			top, bottom := g.window(0, p, g.h)
			for q := range g.q {
				left, right := g.window(1, q, g.w)
				if at := firstEqual(x, c.In[1][i], g.w, top, bottom, left, right); at >= 0 {
					dx[at] += c.In[2][i]
				}
				i++
			}
		}
	}
}

// firstEqual returns the index of the window's first element equal to best, or -1.
func firstEqual[T gemm.Float](x []T, best T, width, top, bottom, left, right int) int {
	for h := top; h < bottom; h++ {
		for w, v := range x[h*width+left : h*width+right] {
			if v == best {
				return h*width + left + w
			}
		}
	}
	return -1
}

// maxPoolIndices: x -> y indices. Windows give what maxPool does, and where firstEqual finds it.
func maxPoolIndices[T gemm.Float](c *Call[T]) {
	g := poolingOf(c.Attrs, c.InShapes[0], c.OutShapes[0])
	y, indices := c.Out[0], bytesOf(c.Out[1])
	c.eachOf(g.planes, g.h*g.w*2, func(n int) {
		x, i := item(c.In[0], n, g.planes), n*g.p*g.q
		for p := range g.p {
			top, bottom := g.window(0, p, g.h)
			for q := range g.q {
				left, right := g.window(1, q, g.w)
				best := largest(x, g.w, top, bottom, left, right)
				if y != nil {
					y[i] = best
				}
				if indices != nil {
					indices[i] = graph.NoMaximum
					if at := firstEqual(x, best, g.w, top, bottom, left, right); at >= 0 {
						indices[i] = byte((at/g.w-top)*(right-left) + at%g.w - left)
					}
				}
				i++
			}
		}
	})
}

// maxPoolIndicesDX: indices dy -> dx. Windows give their gradient in the order of indices, each to one element, or to
// none.
func maxPoolIndicesDX[T gemm.Float](c *Call[T]) {
	g := poolingOf(c.Attrs, c.OutShapes[0], c.InShapes[0])
	indices, dy := bytesOf(c.In[0]), c.In[1]
	c.eachOf(g.planes, g.h*g.w, func(n int) {
		dx, i := item(c.Out[0], n, g.planes), n*g.p*g.q
		clear(dx)
		for p := range g.p {
			top, _ := g.window(0, p, g.h)
			for q := range g.q {
				left, right := g.window(1, q, g.w)
				if index := int(indices[i]); index != graph.NoMaximum {
					columns := right - left
					dx[(top+index/columns)*g.w+left+index%columns] += dy[i]
				}
				i++
			}
		}
	})
}

// bytesOf shows the memory of an operand that holds bytes.
func bytesOf[T gemm.Float](x []T) []byte {
	if x == nil {
		return nil
	}
	var zero T
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(x))), len(x)*int(unsafe.Sizeof(zero)))
}

// divisor is what the sum of a window is divided by, given its rows and columns within the image.
func (g *pooling) divisor(rows, columns int) int {
	if g.inside {
		return rows * columns
	}
	return g.kernel[0] * g.kernel[1]
}

// avgPool: x -> y.
func avgPool[T gemm.Float](c *Call[T]) {
	g := poolingOf(c.Attrs, c.InShapes[0], c.OutShapes[0])
	y := c.Out[0]
	for n := range g.planes {
		x := item(c.In[0], n, g.planes)
		for p := range g.p {
			top, bottom := g.window(0, p, g.h)
			for q := range g.q {
				left, right := g.window(1, q, g.w)
				var total T
				for h := top; h < bottom; h++ {
					for _, v := range x[h*g.w+left : h*g.w+right] {
						total += v
					}
				}
				y[0], y = total/T(g.divisor(bottom-top, right-left)), y[1:]
			}
		}
	}
}

// avgPoolDX: x y dy -> dx.
func avgPoolDX[T gemm.Float](c *Call[T]) {
	avgPoolGradient(poolingOf(c.Attrs, c.InShapes[0], c.InShapes[1]), c.In[2], c.Out[0])
}

// avgPoolDYDX: dy -> dx.
func avgPoolDYDX[T gemm.Float](c *Call[T]) {
	avgPoolGradient(poolingOf(c.Attrs, c.OutShapes[0], c.InShapes[0]), c.In[0], c.Out[0])
}

// avgPoolGradient writes all of dx. Windows give their gradient in the order of dy.
func avgPoolGradient[T gemm.Float](g pooling, dy, to []T) {
	clear(to)
	for n := range g.planes {
		dx := item(to, n, g.planes)
		for p := range g.p {
			top, bottom := g.window(0, p, g.h)
			for q := range g.q {
				left, right := g.window(1, q, g.w)
				share := dy[0] / T(g.divisor(bottom-top, right-left))
				dy = dy[1:]
				for h := top; h < bottom; h++ {
					row := dx[h*g.w+left : h*g.w+right]
					for w := range row {
						row[w] += share
					}
				}
			}
		}
	}
}
