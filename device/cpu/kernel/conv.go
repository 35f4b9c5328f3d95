package kernel

import (
	"tensile/device/cpu/gemm"
	"tensile/graph"
)

// A convolution is a matrix product per chunk: some output rows of one image, or of one group of its channels, which is
// an image of its own. The chunk's input windows are laid out as the columns of a matrix of CRS rows in scratch
// (im2col), or stand there already when the kernel is 1 by 1. The chunks follow from shapes alone, so sums over them
// have a fixed order.

// chunkElements bounds a chunk's columns: 1 MiB of float32.
const chunkElements = 1 << 18

// convolution is the geometry of the three convolution kinds.
type convolution struct {
	n, c, h, w int // of the input; c channels in a group
	k, p, q    int // of the output; k channels in a group
	groups     int
	r, s       int // of the kernel
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

func conv2DScratch(a graph.Attrs, in, out []graph.Shape) int {
	return convolutionOf(a, in[0], out[0]).scratch()
}

func conv2DDWScratch(a graph.Attrs, in, _ []graph.Shape) int {
	return convolutionOf(a, in[0], in[1]).scratch()
}

func conv2DDXScratch(a graph.Attrs, in, out []graph.Shape) int {
	return convolutionOf(a, out[0], in[0]).scratch()
}

// direct reports whether the columns are the image itself.
func (g *convolution) direct() bool {
	return g.r == 1 && g.s == 1 && g.stride == [2]int{1, 1} && g.pad == [2]int{}
}

// crs is the number of elements in a window.
func (g *convolution) crs() int { return g.c * g.r * g.s }

// depthwise reports whether each filter reads one channel of several.
func (g *convolution) depthwise() bool { return g.groups > 1 && g.c == 1 }

// rows is the number of output rows in a chunk.
func (g *convolution) rows() int {
	if g.direct() {
		return g.p
	}
	return min(g.p, max(1, chunkElements/(g.crs()*g.q)))
}

func (g convolution) scratch() int {
	if g.direct() || g.depthwise() {
		return 0
	}
	return g.crs() * g.rows() * g.q
}

// conv2D: x w (b) -> y, as y = w·columns, on top of the bias.
func conv2D[T gemm.Float](c *Call[T]) {
	x, w, y := c.In[0], c.In[1], c.Out[0]
	g := convolutionOf(c.Attrs, c.InShapes[0], c.OutShapes[0])
	if g.depthwise() {
		depthwise(c, &g)
		return
	}
	rows := g.rows()
	for n := range g.n * g.groups {
		image, out, w := item(x, n, g.n*g.groups), item(y, n, g.n*g.groups), item(w, n%g.groups, g.groups)
		if len(c.In) == 3 {
			for k, b := range item(c.In[2], n%g.groups, g.groups) {
				fill(item(out, k, g.k), b)
			}
		}
		for p := 0; p < g.p; p += rows {
			m := min(rows, g.p-p)
			gemm.Multiply(c.GEMM, gemm.Product[T]{
				M: g.k, N: m * g.q, K: g.crs(),
				A:   gemm.Matrix[T]{Data: w, Stride: g.crs()},
				B:   columns(&g, c.Scratch, image, p, m),
				C:   gemm.Matrix[T]{Data: out[p*g.q:], Stride: g.p * g.q},
				Add: len(c.In) == 3,
			})
		}
	}
}

// conv2DDW: x dy -> dw, as the sum of dy·columnsᵀ over images and their chunks, in order.
func conv2DDW[T gemm.Float](c *Call[T]) {
	x, dy, dw := c.In[0], c.In[1], c.Out[0]
	g := convolutionOf(c.Attrs, c.InShapes[0], c.InShapes[1])
	if g.depthwise() {
		depthwiseDW(c, &g)
		return
	}
	rows := g.rows()
	for n := range g.n * g.groups {
		image, gradient, dw := item(x, n, g.n*g.groups), item(dy, n, g.n*g.groups), item(dw, n%g.groups, g.groups)
		for p := 0; p < g.p; p += rows {
			m := min(rows, g.p-p)
			b := columns(&g, c.Scratch, image, p, m)
			b.Transposed = true
			gemm.Multiply(c.GEMM, gemm.Product[T]{
				M: g.k, N: g.crs(), K: m * g.q,
				A:   gemm.Matrix[T]{Data: gradient[p*g.q:], Stride: g.p * g.q},
				B:   b,
				C:   gemm.Matrix[T]{Data: dw, Stride: g.crs()},
				Add: n >= g.groups || p > 0,
			})
		}
	}
}

// conv2DDX: dy w -> dx, as columns = wᵀ·dy, added up where windows overlap.
func conv2DDX[T gemm.Float](c *Call[T]) {
	dy, w, dx := c.In[0], c.In[1], c.Out[0]
	g := convolutionOf(c.Attrs, c.OutShapes[0], c.InShapes[0])
	if g.depthwise() {
		depthwiseDX(c, &g)
		return
	}
	rows := g.rows()
	for n := range g.n * g.groups {
		image, gradient, w := item(dx, n, g.n*g.groups), item(dy, n, g.n*g.groups), item(w, n%g.groups, g.groups)
		if !g.direct() {
			clear(image)
		}
		for p := 0; p < g.p; p += rows {
			m := min(rows, g.p-p)
			cols := gemm.Matrix[T]{Data: c.Scratch, Stride: m * g.q}
			if g.direct() {
				cols.Data = image
			}
			gemm.Multiply(c.GEMM, gemm.Product[T]{
				M: g.crs(), N: m * g.q, K: g.k,
				A: gemm.Matrix[T]{Data: w, Stride: g.crs(), Transposed: true},
				B: gemm.Matrix[T]{Data: gradient[p*g.q:], Stride: g.p * g.q},
				C: cols,
			})
			if !g.direct() {
				col2im(&g, image, c.Scratch, p, m)
			}
		}
	}
}

// columns returns the windows of m output rows from p on, one window a column.
func columns[T gemm.Float](g *convolution, scratch, image []T, p, m int) gemm.Matrix[T] {
	if g.direct() {
		return gemm.Matrix[T]{Data: image, Stride: g.h * g.w}
	}
	im2col(g, scratch, image, p, m)
	return gemm.Matrix[T]{Data: scratch, Stride: m * g.q}
}

// item returns part n of x, which has count equal parts.
func item[T gemm.Float](x []T, n, count int) []T {
	size := len(x) / count
	return x[n*size:][:size]
}

func fill[T gemm.Float](x []T, v T) {
	for i := range x {
		x[i] = v
	}
}
