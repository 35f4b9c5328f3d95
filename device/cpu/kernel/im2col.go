package kernel

import "tensile/device/cpu/gemm"

// A row (c,r,s) of the matrix of columns holds what weight (c,r,s) meets at each output. Padding is zero.

// im2col writes the rows of channels [from, to) for m output rows from p on into cols, m*q elements each.
func im2col[T gemm.Float](g *convolution, cols, image []T, from, to, p, m int) {
	for c := from; c < to; c++ {
		plane := image[c*g.h*g.w:][:g.h*g.w]
		for r := range g.r {
			for s := range g.s {
				for i := range m {
					meets(g, cols[:g.q], plane, r, s, p+i, 0)
					cols = cols[g.q:]
				}
			}
		}
	}
}

// meets writes what weight (r,s) meets in a plane at the outputs of row p, from column q on.
func meets[T gemm.Float](g *convolution, row, plane []T, r, s, p, q int) {
	from, to := g.validColumns(s)
	from, to = max(from-q, 0), min(to-q, len(row))
	h := p*g.stride[0] - g.pad[0] + r
	if h < 0 || h >= g.h || from >= to {
		clear(row)
		return
	}
	clear(row[:from])
	gather(row[from:to], plane[h*g.w:][:g.w][(q+from)*g.stride[1]-g.pad[1]+s:], g.stride[1])
	clear(row[to:])
}

// windows is the matrix of columns of an image from output row p on, made as it is read.
type windows[T gemm.Float] struct {
	g     convolution
	image []T
	p     int
}

// Write implements gemm.Source.
func (w *windows[T]) Write(to []T, stride, row, rows, column, columns int) {
	g := &w.g
	for i := range rows {
		c, r, s := (row+i)/(g.r*g.s), (row+i)/g.s%g.r, (row+i)%g.s
		plane := w.image[c*g.h*g.w:][:g.h*g.w]
		for line, at := to[i*stride:][:columns], column; len(line) > 0; {
			q := at % g.q
			n := min(g.q-q, len(line))
			meets(g, line[:n], plane, r, s, w.p+at/g.q, q)
			line, at = line[n:], at+n
		}
	}
}

// col2im adds cols, the gradient of the windows that im2col writes, to the image's gradient, in the order of cols.
func col2im[T gemm.Float](g *convolution, image, cols []T, from, to, p, m int) {
	for c := from; c < to; c++ {
		plane := image[c*g.h*g.w:][:g.h*g.w]
		for r := range g.r {
			for s := range g.s {
				from, to := g.validColumns(s)
				for i := range m {
					row := cols[:g.q]
					cols = cols[g.q:]
					h := (p+i)*g.stride[0] - g.pad[0] + r
					if h < 0 || h >= g.h || from >= to {
						continue
					}
					scatter(plane[h*g.w:][:g.w][from*g.stride[1]-g.pad[1]+s:], row[from:to], g.stride[1])
				}
			}
		}
	}
}

// validColumns returns the output columns [from, to) at which weight column s meets the image rather than padding.
func (g *convolution) validColumns(s int) (from, to int) {
	offset, stride := g.pad[1]-s, g.stride[1]
	if offset > 0 {
		from = (offset + stride - 1) / stride
	}
	if end := g.w + offset; end > 0 {
		to = min(g.q, (end+stride-1)/stride)
	}
	return from, to
}

// gather copies every stride-th element of src to dst.
func gather[T gemm.Float](dst, src []T, stride int) {
	if stride == 1 {
		copy(dst, src)
		return
	}
	for i := range dst {
		dst[i] = src[i*stride]
	}
}

// scatter adds src to every stride-th element of dst.
func scatter[T gemm.Float](dst, src []T, stride int) {
	if stride == 1 {
		dst = dst[:len(src)]
		for i, v := range src {
			dst[i] += v
		}
		return
	}
	for i, v := range src {
		dst[i*stride] += v
	}
}
