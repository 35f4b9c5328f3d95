package kernels

import "tensile/graph"

var convolutions = map[graph.Kind]entry{
	graph.Conv2D: convolved(func(c *Call) convolution {
		return convolutionOf(c.Attrs, c.InShapes[0], c.OutShapes[0])
	}, conv2D, grouped),
	graph.Conv2DDW: convolved(func(c *Call) convolution {
		return convolutionOf(c.Attrs, c.InShapes[0], c.InShapes[1])
	}, conv2DDW, groupedDW),
	graph.Conv2DDX: convolved(func(c *Call) convolution {
		return convolutionOf(c.Attrs, c.OutShapes[0], c.InShapes[0])
	}, conv2DDX, groupedDX),
}

// convolution is the geometry of the three convolution kinds.
type convolution struct {
	n, c, h, w int // Extents of the input, with c channels per group.
	k, p, q    int // Extents of the output, with k filters per group.
	groups     int
	r, s       int // Extents of the kernel.
	stride     [2]int
	pad        [2]int
}

func convolutionOf(a graph.Attrs, x, y graph.Shape) convolution {
	groups := max(1, a.Groups)
	return convolution{
		n: x[0], c: x[1] / groups, h: x[2], w: x[3], k: y[1] / groups, p: y[2], q: y[3], groups: groups,
		r: a.Kernel[0], s: a.Kernel[1], stride: a.Stride, pad: a.Pad,
	}
}

// convolved is the entry of a kind that is made of products, or without them where groups are narrow.
func convolved(of func(c *Call) convolution, list func(c *Call, g *convolution) []product,
	grouped func(c *Call, g *convolution) Launch) entry {
	e := made(func(c *Call) []product {
		g := of(c)
		g.check()
		if !g.narrow() {
			return list(c, &g)
		}
		return nil
	})
	launches := e.launches
	e.launches = func(c *Call) []Launch {
		if g := of(c); g.narrow() {
			g.check()
			return []Launch{grouped(c, &g)}
		}
		return launches(c)
	}
	return e
}

// check refuses a convolution whose places in an image, or in the filters of a group, cannot be counted.
func (g *convolution) check() {
	const stride = 1 << 10 // conv2DDX has a product for each place between two windows
	if max(g.c*g.h*g.w, g.k*g.p*g.q, g.k*g.c*g.r*g.s) > maxIndex || g.p > none ||
		max(g.stride[0], g.stride[1]) > stride {
		refuse("a convolution with kernels of %dx%d and a stride of %dx%d, of images of %dx%dx%d to ones of %dx%dx%d "+
			"for each of %d groups, is too large", g.r, g.s, g.stride[0], g.stride[1],
			g.c, g.h, g.w, g.k, g.p, g.q, g.groups)
	}
}

// narrow reports whether groups have so few filters or channels that tiles would be nearly empty.
func (g *convolution) narrow() bool { return g.groups > 1 && min(g.c, g.k) < 8 }

// direct reports whether the windows are the pixels themselves.
func (g *convolution) direct() bool {
	return g.r == 1 && g.s == 1 && g.stride == [2]int{1, 1} && g.pad == [2]int{}
}

// pixelsAreColumns reports whether pixels can be the columns of a matrix as they stand in memory: four of them must lie
// in one image.
func (g *convolution) pixelsAreColumns() bool { return g.direct() && (g.n == 1 || g.h*g.w%4 == 0) }

// x, y and weights are the operands, seen as matrices of pixels or of windows, with a group as an entry of the batch.
func (g *convolution) x(address uint64) matrix {
	hw := g.h * g.w
	return matrix{address: address, stride: hw, image: g.groups * g.c * hw, batch: g.c * hw}
}

func (g *convolution) y(address uint64) matrix {
	pq := g.p * g.q
	return matrix{address: address, stride: pq, image: g.groups * g.k * pq, batch: g.k * pq}
}

func (g *convolution) weights(address uint64) matrix {
	return matrix{address: address, stride: g.c * g.r * g.s, batch: g.k * g.c * g.r * g.s}
}

// images is a target like a matrix that is made of images.
func (o matrix) images(plane int) target {
	return target{address: o.address, stride: o.stride, image: o.image, plane: plane, batch: o.batch}
}

// conv2D: x w (b) -> y, as w by the windows of x.
func conv2D(c *Call, g *convolution) []product {
	p := product{
		kernel: "conv", m: g.k, n: g.n * g.p * g.q, k: g.c * g.r * g.s, batch: g.groups,
		a: g.weights(c.In[1]), b: g.x(c.In[0]), kPlane: none, nPlane: g.p * g.q,
		c: g.y(c.Out[0]).images(g.p * g.q),
	}
	if len(c.In) == 3 {
		p.c.bias, p.c.biasOfRows, p.c.biasBatch = c.In[2], true, g.k
	}
	if g.pixelsAreColumns() {
		p.kernel = "product_nn"
		return []product{p}
	}
	p.image = &image{
		height: g.h, width: g.w,
		js: g.r, is: g.s, kOuter: g.h * g.w, jStep: 1, iStep: 1,
		ys: g.p, xs: g.q, nOuter: p.b.image,
		yStep: g.stride[0], xStep: g.stride[1], yFirst: -g.pad[0], xFirst: -g.pad[1],
	}
	return []product{p}
}

// conv2DDW: x dy -> dw, as dy by the windows of x, summed over images and pixels of dy in order.
func conv2DDW(c *Call, g *convolution) []product {
	p := product{
		kernel: "conv_dw", m: g.k, n: g.c * g.r * g.s, k: g.n * g.p * g.q, batch: g.groups,
		a: g.y(c.In[1]), b: g.x(c.In[0]), kPlane: g.p * g.q, nPlane: none,
		c: g.weights(c.Out[0]).images(none),
	}
	if g.direct() {
		p.kernel = "product_nt"
		return []product{p}
	}
	p.image = &image{
		height: g.h, width: g.w,
		js: g.p, is: g.q, kOuter: p.b.image, jStep: g.stride[0], iStep: g.stride[1],
		ys: g.r, xs: g.s, nOuter: g.h * g.w, yStep: 1, xStep: 1, yFirst: -g.pad[0], xFirst: -g.pad[1],
	}
	return []product{p}
}

// conv2DDX: dy w -> dx. Pixels of dx a stride apart meet the same weights of their windows: they are the columns of a
// product of those weights by the pixels of dy.
func conv2DDX(c *Call, g *convolution) (all []product) {
	if g.pixelsAreColumns() {
		w := g.weights(c.In[1])
		return []product{{
			kernel: "product_tn", m: g.c, n: g.n * g.h * g.w, k: g.k, batch: g.groups,
			a: w, b: g.y(c.In[0]), kPlane: none, nPlane: g.h * g.w, c: g.x(c.Out[0]).images(g.h * g.w),
		}}
	}
	for v := range g.stride[0] {
		for u := range g.stride[1] {
			rows, cols := phaseOf(v, g.h, g.r, g.stride[0], g.pad[0]), phaseOf(u, g.w, g.s, g.stride[1], g.pad[1])
			if rows.count == 0 || cols.count == 0 {
				continue
			}
			w := g.weights(floats(c.In[1], v*g.s+u))
			p := product{
				kernel: "conv_dx", m: g.c, n: g.n * rows.count * cols.count, k: g.k * rows.taps * cols.taps,
				batch: g.groups, a: matrix{address: w.address, stride: g.r * g.s, batch: w.batch}, b: g.y(c.In[0]),
				kPlane: none, nPlane: none,
				c: g.x(c.Out[0]).images(rows.count * cols.count),
				image: &image{
					height: g.p, width: g.q,
					js: max(1, rows.taps), is: max(1, cols.taps), kOuter: g.p * g.q, jStep: -1, iStep: -1,
					ys: rows.count, xs: cols.count, nOuter: g.groups * g.k * g.p * g.q, yStep: 1, xStep: 1,
					yFirst: rows.window, xFirst: cols.window,
				},
				filter: &[3]int{g.c * g.r * g.s, g.stride[0] * g.s, g.stride[1]},
			}
			if g.stride != [2]int{1, 1} {
				p.c.lattice = [6]int{cols.count, g.w, rows.first, cols.first, g.stride[0], g.stride[1]}
			}
			all = append(all, p)
		}
	}
	return all
}

// phase is the pixels in one direction of x, a stride apart, that meet weight v of a window and those a stride apart.
type phase struct {
	first, count int // pixels
	taps         int // weights that they meet
	window       int // which has its weight v at the first of them
}

func phaseOf(v, extent, kernel, stride, pad int) phase {
	first := (v - pad%stride + stride) % stride
	return phase{
		first: first, count: max(0, ceil(extent-first, stride)), taps: max(0, ceil(kernel-v, stride)),
		window: (first + pad - v) / stride,
	}
}

// blocks of narrow groups
const (
	groupedThreads   = 64 // a plane is often as small as that
	groupedDWThreads = 128
)

func grouped(c *Call, g *convolution) Launch {
	bias := uint64(0)
	if len(c.In) == 3 {
		bias = c.In[2]
	}
	return launch("grouped", g.n*g.groups*g.k*ceil(g.p*g.q, groupedThreads), groupedThreads,
		append([]any{c.In[0], c.In[1], bias, c.Out[0]}, g.args()...)...)
}

func groupedDX(c *Call, g *convolution) Launch {
	return launch("grouped_dx", g.n*g.groups*g.c*ceil(g.h*g.w, groupedThreads), groupedThreads,
		append([]any{c.In[1], c.In[0], c.Out[0]}, g.args()...)...)
}

func groupedDW(c *Call, g *convolution) Launch {
	return launch("grouped_dw", g.groups*g.k*g.c*g.r*g.s, groupedDWThreads,
		append([]any{c.In[1], c.In[0], c.Out[0], g.n}, g.args()...)...)
}

func (g *convolution) args() []any {
	return []any{
		g.groups * g.k, g.groups * g.c, g.k, g.c, g.h, g.w, g.p, g.q,
		g.r, g.s, g.stride[0], g.stride[1], g.pad[0], g.pad[1],
	}
}
