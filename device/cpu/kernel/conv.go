package kernel

import (
	"fmt"

	"tensile/device/cpu/gemm"
	"tensile/graph"
)

// A convolution is a matrix product with the matrix of columns: its CRS rows hold what each weight of a filter meets,
// its columns are the input windows of the outputs, image after image. Going forward and for the gradient of the
// weights it is never stored: the product writes parts of it where it needs them ([windows]), or reads the input itself
// where the kernel is 1 by 1. The gradient of the input is a product that makes such columns, in scratch, and adds them
// up where windows overlap (col2im).
//
// Outputs of images are products of their own, but for small ones, which are one: else what is laid out of the weights
// would be used too seldom.

const (
	// smallImage is below how many outputs of an image all images are one product.
	smallImage = 256
	// chunkElements bounds the columns of a gradient: 1 MiB of float32.
	chunkElements = 1 << 18
)

// layout is a variant of the gradient of the input: it takes some channels at a time, and gives the same bits.
type layout struct {
	name     string
	elements int // that the columns may be at most
	share    int // of time relative to the first, in thousandths; 0: the same
}

// layouts are the variants, the default first. The shares are what BenchmarkConvolution came to on one thread of an
// EPYC with AVX2: geometric means of 64 channels at 32 x 32, 512 at 7 x 7 and 3 at 224 x 224 as far as they have the
// variant, best of four.
var layouts = []layout{
	{"direct", chunkElements, 0},
	{"columns-256k", chunkElements / 4, 1090},
	{"columns-64k", chunkElements / 16, 1050},
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

// direct reports whether the columns are the image itself.
func (g *convolution) direct() bool {
	return g.r == 1 && g.s == 1 && g.stride == [2]int{1, 1} && g.pad == [2]int{}
}

// crs is the number of elements in a window.
func (g *convolution) crs() int { return g.c * g.r * g.s }

// depthwise reports whether each filter reads one channel of several.
func (g *convolution) depthwise() bool { return g.groups > 1 && g.c == 1 }

// imagesAtOnce is how many images are one product.
func (g *convolution) imagesAtOnce() int {
	if g.p*g.q < smallImage {
		return g.n
	}
	return 1
}

// chunk is how many images, or if it is one, how many of its output rows are the columns of a gradient at once.
func (g *convolution) chunk() (images, rows int) {
	row := g.crs() * g.q
	if g.direct() {
		return g.imagesAtOnce(), g.p
	}
	if rows = min(g.p, max(1, chunkElements/row)); rows < g.p {
		return 1, rows
	}
	return min(g.imagesAtOnce(), max(1, min(chunkElements/row, smallImage/g.q)/g.p)), rows
}

// channels is how many channels of a number of columns are computed at once.
func (g *convolution) channels(l layout, columns int) int {
	return min(g.c, max(1, l.elements/(g.r*g.s*columns)))
}

func conv2DDXScratch(v string, a graph.Attrs, in, out []graph.Shape) int {
	g := convolutionOf(a, out[0], in[0])
	images, rows := g.chunk()
	if g.depthwise() || g.direct() {
		return 0
	}
	columns := images * rows * g.q
	return g.channels(layoutOf(v), columns) * g.r * g.s * columns
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

// images are those of one group in an operand: image n of group o is the part of number n*groups + o.
type images[T gemm.Float] struct {
	data          []T
	groups, group int
	size          int // elements of a part
}

func imagesOf[T gemm.Float](g *convolution, data []T, group int) images[T] {
	return images[T]{data, g.groups, group, len(data) / (g.n * g.groups)}
}

// startOf is the memory from an image of the group on.
func (i *images[T]) startOf(n int) []T { return i.data[(n*i.groups+i.group)*i.size:] }

// planes shows images from one on as a matrix with a row per channel and all pixels of an image, and then of the next,
// in it.
type planes[T gemm.Float] struct {
	images[T]
	first, pixels int
}

// Write implements gemm.Source.
func (p *planes[T]) Write(to []T, stride, row, rows, column, columns int) {
	for done := 0; done < columns; {
		n, at := (column+done)/p.pixels, (column+done)%p.pixels
		count := min(columns-done, p.pixels-at)
		from := p.startOf(p.first + n)[row*p.pixels+at:]
		for i := range rows {
			copy(to[i*stride+done:][:count], from[i*p.pixels:])
		}
		done += count
	}
}

// matrix is the source, or the memory itself where it is one image.
func (p *planes[T]) matrix(count int) gemm.Matrix[T] {
	if count > 1 {
		return gemm.Matrix[T]{Source: p}
	}
	return gemm.Matrix[T]{Data: p.startOf(p.first), Stride: p.pixels}
}

// columns is the matrix of columns of a number of images of x from one on.
func columns[T gemm.Float](g *convolution, x images[T], first, count int) gemm.Matrix[T] {
	if g.direct() {
		return (&planes[T]{x, first, g.h * g.w}).matrix(count)
	}
	return gemm.Matrix[T]{Source: &windows[T]{g, x, first}}
}

// conv2D: x w (b) -> y, as y = w·columns, on top of the bias.
func conv2D[T gemm.Float](c *Call[T]) {
	g := convolutionOf(c.Attrs, c.InShapes[0], c.OutShapes[0])
	if g.depthwise() {
		depthwise(c, &g)
		return
	}
	y, pixels := c.Out[0], g.p*g.q
	if len(c.In) == 3 {
		all := len(c.In[2])
		c.eachOf(g.n*all, pixels, func(i int) { fill(y[i*pixels:][:pixels], c.In[2][i%all]) })
	}
	for group := range g.groups {
		x, out := imagesOf(&g, c.In[0], group), imagesOf(&g, y, group)
		for n := 0; n < g.n; n += g.imagesAtOnce() {
			gemm.Multiply(c.GEMM, gemm.Product[T]{
				M: g.k, N: g.imagesAtOnce() * pixels, K: g.crs(),
				A: gemm.Matrix[T]{Data: item(c.In[1], group, g.groups), Stride: g.crs()},
				B: columns(&g, x, n, g.imagesAtOnce()),
				C: gemm.Matrix[T]{Data: out.startOf(n), Stride: pixels, Segment: pixels,
					Jump: g.groups * out.size},
				Add: len(c.In) == 3,
			})
		}
	}
}

// conv2DDW: x dy -> dw, as the sum of dy·columnsᵀ over images, in order.
func conv2DDW[T gemm.Float](c *Call[T]) {
	g := convolutionOf(c.Attrs, c.InShapes[0], c.InShapes[1])
	if g.depthwise() {
		depthwiseDW(c, &g)
		return
	}
	for group := range g.groups {
		x, dy := imagesOf(&g, c.In[0], group), imagesOf(&g, c.In[1], group)
		for n := 0; n < g.n; n += g.imagesAtOnce() {
			b := columns(&g, x, n, g.imagesAtOnce())
			b.Transposed = true
			gemm.Multiply(c.GEMM, gemm.Product[T]{
				M: g.k, N: g.crs(), K: g.imagesAtOnce() * g.p * g.q,
				A:   (&planes[T]{dy, n, g.p * g.q}).matrix(g.imagesAtOnce()),
				B:   b,
				C:   gemm.Matrix[T]{Data: item(c.Out[0], group, g.groups), Stride: g.crs()},
				Add: n > 0,
			})
		}
	}
}

// conv2DDX: dy w -> dx, as columns = wᵀ·dy, added up where windows overlap.
func conv2DDX[T gemm.Float](c *Call[T]) {
	g := convolutionOf(c.Attrs, c.OutShapes[0], c.InShapes[0])
	if g.depthwise() {
		depthwiseDX(c, &g)
		return
	}
	dx := c.Out[0]
	if !g.direct() {
		c.split(g.n, len(dx)/g.n, func(from, to int) { clear(dx[from*len(dx)/g.n : to*len(dx)/g.n]) })
	}
	count, rows := g.chunk()
	channels := g.channels(layoutOf(c.Variant), count*rows*g.q)
	for group := range g.groups {
		gradient, out := imagesOf(&g, c.In[0], group), imagesOf(&g, dx, group)
		w := item(c.In[1], group, g.groups)
		for n := 0; n < g.n; n += count {
			count := min(count, g.n-n)
			for p := 0; p < g.p; p += rows {
				m := min(rows, g.p-p)
				b := (&planes[T]{gradient, n, g.p * g.q}).matrix(count)
				if count == 1 {
					b.Data = b.Data[p*g.q:]
				}
				conv2DDXChunk(c, &g, w, b, out, channels, n, count, p, m)
			}
		}
	}
}

// conv2DDXChunk is what m output rows from p on of a number of images from n on give their inputs, some channels at a
// time.
func conv2DDXChunk[T gemm.Float](c *Call[T], g *convolution, w []T, dy gemm.Matrix[T], dx images[T],
	channels, n, count, p, m int) {
	columns, window := count*m*g.q, g.r*g.s
	product := gemm.Product[T]{N: columns, K: g.k, B: dy}
	if g.direct() {
		product.M, product.A = g.c, gemm.Matrix[T]{Data: w, Stride: g.c, Transposed: true}
		product.C = gemm.Matrix[T]{Data: dx.startOf(n), Stride: g.p * g.q, Segment: g.p * g.q, Jump: g.groups * dx.size}
		gemm.Multiply(c.GEMM, product)
		return
	}
	for from := 0; from < g.c; from += channels {
		part := min(channels, g.c-from)
		product.M = part * window
		product.A = gemm.Matrix[T]{Data: w[from*window:], Stride: g.crs(), Transposed: true}
		product.C = gemm.Matrix[T]{Data: c.Scratch, Stride: columns}
		gemm.Multiply(c.GEMM, product)
		c.eachOf(part, window*columns, func(i int) {
			for image := range count {
				plane := dx.startOf(n + image)[(from+i)*g.h*g.w:][:g.h*g.w]
				col2im(g, plane, c.Scratch[i*window*columns+image*m*g.q:], columns, p, m)
			}
		})
	}
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
