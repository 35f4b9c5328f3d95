package kernel

import (
	"fmt"

	"tensile/device/cpu/gemm"
	"tensile/graph"
)

// A convolution is a matrix product per chunk: some output rows of one image, or of one group of its channels, which is
// an image of its own. The chunk's input windows are laid out as the columns of a matrix of CRS rows in scratch
// (im2col), or stand there already when the kernel is 1 by 1. The chunks follow from shapes alone, so sums over them
// have a fixed order.
//
// Variants need less scratch and give the same bits. A forward chunk has fewer rows, since each output is a sum of its
// own. The gradients keep their chunks, whose order decides what is added to what, and take some channels of one at a
// time. The implicit variant writes the columns into the engine's own panels, where gonum reads them.

// chunkElements bounds a chunk's columns: 1 MiB of float32.
const chunkElements = 1 << 18

// layout is a variant of a convolution.
type layout struct {
	name     string
	elements int // that the columns in scratch may be at most; 0: they are in none
	share    map[graph.Kind]int
}

// layouts are the variants of a convolution, the default first. The shares are what BenchmarkConvolution came to with
// gonum on two shared cores: geometric means of 64 channels at 32 x 32, 512 at 7 x 7 and 3 at 224 x 224, best of four.
var layouts = []layout{
	{"direct", chunkElements, nil},
	{"columns-256k", chunkElements / 4,
		map[graph.Kind]int{graph.Conv2D: 1070, graph.Conv2DDW: 960, graph.Conv2DDX: 1010}},
	{"columns-64k", chunkElements / 16,
		map[graph.Kind]int{graph.Conv2D: 1030, graph.Conv2DDW: 1020, graph.Conv2DDX: 960}},
	{"implicit", 0, map[graph.Kind]int{graph.Conv2D: 970, graph.Conv2DDW: 1030}},
}

// convolution is the geometry of the three convolution kinds.
type convolution struct {
	n, c, h, w int // Extents of the input, with c channels per group.
	k, p, q    int // Extents of the output, with k channels per group.
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

func conv2DScratch(v string, a graph.Attrs, in, out []graph.Shape) int {
	g, l := convolutionOf(a, in[0], out[0]), layoutOf(v)
	if g.bare() || l.elements == 0 {
		return 0
	}
	return g.crs() * g.rowsOf(l) * g.q
}

func conv2DDWScratch(v string, a graph.Attrs, in, _ []graph.Shape) int {
	g, l := convolutionOf(a, in[0], in[1]), layoutOf(v)
	if l.elements == 0 {
		return 0
	}
	return g.scratch(l)
}

func conv2DDXScratch(v string, a graph.Attrs, in, out []graph.Shape) int {
	g := convolutionOf(a, out[0], in[0])
	return g.scratch(layoutOf(v))
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

// bare reports whether the convolution needs no columns.
func (g *convolution) bare() bool { return g.direct() || g.depthwise() }

// scratch is how much of it the columns of a chunk take, going backward.
func (g *convolution) scratch(l layout) int {
	if g.bare() {
		return 0
	}
	rows := g.rows()
	return g.channels(l, rows) * g.r * g.s * rows * g.q
}

// rowsOf is how many output rows are computed at once, going forward.
func (g *convolution) rowsOf(l layout) int {
	switch {
	case g.direct() || l.elements == 0:
		return g.p
	case l.elements == chunkElements:
		return g.rows()
	}
	return min(g.p, max(1, l.elements/(g.crs()*g.q)))
}

// channels is how many channels of a chunk of rows are computed at once in the backward pass.
func (g *convolution) channels(l layout, rows int) int {
	if g.bare() || l.elements == 0 || l.elements == chunkElements {
		return g.c
	}
	return min(g.c, max(1, l.elements/(g.r*g.s*rows*g.q)))
}

// totalRows returns how many rows the whole product has, of which a call computes some: 0 where it computes all at
// once.
func (g *convolution) totalRows(channels int) int {
	if channels == g.c {
		return 0
	}
	return g.crs()
}

// layoutOf returns a variant by its name, "" being the first.
func layoutOf(name string) layout {
	for _, l := range layouts {
		if name == "" || name == l.name {
			return l
		}
	}
	panic(fmt.Sprintf("kernel: a convolution has no variant %q", name))
}

// conv2D: x w (b) -> y, as y = w·columns, on top of the bias.
func conv2D[T gemm.Float](c *Call[T]) {
	x, w, y := c.In[0], c.In[1], c.Out[0]
	g := convolutionOf(c.Attrs, c.InShapes[0], c.OutShapes[0])
	if g.depthwise() {
		depthwise(c, &g)
		return
	}
	l := layoutOf(c.Variant)
	rows := g.rowsOf(l)
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
				B:   columns(c, &g, l, image, 0, g.c, p, m),
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
	l, rows := layoutOf(c.Variant), g.rows()
	channels := g.channels(l, rows)
	for n := range g.n * g.groups {
		image, gradient, dw := item(x, n, g.n*g.groups), item(dy, n, g.n*g.groups), item(dw, n%g.groups, g.groups)
		for p := 0; p < g.p; p += rows {
			m := min(rows, g.p-p)
			for from := 0; from < g.c; from += channels {
				to := min(g.c, from+channels)
				b := columns(c, &g, l, image, from, to, p, m)
				b.Transposed = true
				gemm.Multiply(c.GEMM, gemm.Product[T]{
					M: g.k, N: (to - from) * g.r * g.s, K: m * g.q,
					A:   gemm.Matrix[T]{Data: gradient[p*g.q:], Stride: g.p * g.q},
					B:   b,
					C:   gemm.Matrix[T]{Data: dw[from*g.r*g.s:], Stride: g.crs()},
					Add: n >= g.groups || p > 0,
				})
			}
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
	l, rows := layoutOf(c.Variant), g.rows()
	channels := g.channels(l, rows)
	for n := range g.n * g.groups {
		image, gradient, w := item(dx, n, g.n*g.groups), item(dy, n, g.n*g.groups), item(w, n%g.groups, g.groups)
		if !g.direct() {
			clear(image)
		}
		for p := 0; p < g.p; p += rows {
			m := min(rows, g.p-p)
			for from := 0; from < g.c; from += channels {
				to := min(g.c, from+channels)
				cols := gemm.Matrix[T]{Data: c.Scratch, Stride: m * g.q}
				if g.direct() {
					cols.Data = image
				}
				gemm.Multiply(c.GEMM, gemm.Product[T]{
					M: (to - from) * g.r * g.s, N: m * g.q, K: g.k, Of: g.totalRows(channels),
					A: gemm.Matrix[T]{Data: w[from*g.r*g.s:], Stride: g.crs(), Transposed: true},
					B: gemm.Matrix[T]{Data: gradient[p*g.q:], Stride: g.p * g.q},
					C: cols,
				})
				if !g.direct() {
					col2im(&g, image, c.Scratch, from, to, p, m)
				}
			}
		}
	}
}

// columns returns the windows of m output rows from p on, one window a column, as far as they are of channels
// [from, to).
func columns[T gemm.Float](c *Call[T], g *convolution, l layout, image []T, from, to, p, m int) gemm.Matrix[T] {
	switch {
	case g.direct():
		return gemm.Matrix[T]{Data: image, Stride: g.h * g.w}
	case l.elements == 0:
		c.windows = windows[T]{*g, image, p}
		return gemm.Matrix[T]{Source: &c.windows}
	}
	im2col(g, c.Scratch, image, from, to, p, m)
	return gemm.Matrix[T]{Data: c.Scratch, Stride: m * g.q}
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
