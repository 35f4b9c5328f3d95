package kernel

import (
	"tensile/device/cpu/gemm"
	"tensile/device/cpu/vector"
)

// windows is the matrix of columns of images from one on. A row (c,r,s) holds what weight (c,r,s) meets at each output.
// Padding is zero.
type windows[T gemm.Float] struct {
	g     *convolution
	x     images[T]
	first int
}

// Write implements gemm.Source, for runs of outputs that are in the same row of the same image.
func (w *windows[T]) Write(to []T, stride, row, rows, column, columns int) {
	g := w.g
	for done := 0; done < columns; {
		at := column + done
		n, p, q := at/(g.p*g.q), at/g.q%g.p, at%g.q
		count := min(g.q-q, columns-done)
		w.run(to[done:], stride, row, rows, w.x.startOf(w.first+n), p, q, count)
		done += count
	}
}

// run writes what rows of weights meet in an image at so many outputs from (p, q) on.
func (w *windows[T]) run(to []T, stride, row, rows int, image []T, p, q, count int) {
	g := w.g
	c, r, s := row/(g.r*g.s), row/g.s%g.r, row%g.s
	left, top := q*g.stride[1]-g.pad[1], p*g.stride[0]-g.pad[0]
	for i := range rows {
		line, h, first := to[i*stride:][:count], top+r, left+s
		switch {
		case h < 0 || h >= g.h:
			clear(line)
		case g.stride[1] == 1:
			copyWithin(line, image, (c*g.h+h)*g.w+first, min(max(-first, 0), count), max(min(g.w-first, count), 0))
		default:
			plane := image[(c*g.h+h)*g.w:][:g.w]
			for j := range line {
				if at := first + j*g.stride[1]; at >= 0 && at < g.w {
					line[j] = plane[at]
				} else {
					line[j] = 0
				}
			}
		}
		if s++; s == g.s {
			if s, r = 0, r+1; r == g.r {
				r, c = 0, c+1
			}
		}
	}
}

// copyWithin copies the elements [begin, end) of a line from where its first would be, and sets the others to zero.
// Where there is memory for all, all are copied first: for the widths that are frequent a few instructions do that.
func copyWithin[T gemm.Float](line, from []T, at, begin, end int) {
	n := len(line)
	if at < 0 || at+n > len(from) {
		clear(line)
		if begin < end {
			copy(line[begin:end], from[at+begin:])
		}
		return
	}
	switch from = from[at:]; n {
	case 16:
		*(*[16]T)(line) = *(*[16]T)(from)
	case 8:
		*(*[8]T)(line) = *(*[8]T)(from)
	case 4:
		*(*[4]T)(line) = *(*[4]T)(from)
	default:
		copy(line, from)
	}
	for j := range min(begin, n) {
		line[j] = 0
	}
	for j := max(end, 0); j < n; j++ {
		line[j] = 0
	}
}

// col2im adds the gradient of the windows of m output rows from p on to a plane of the image's gradient, weight after
// weight. Those of a weight lie stride elements after those of the weight before.
func col2im[T gemm.Float](g *convolution, plane, cols []T, stride, p, m int) {
	for r := range g.r {
		for s := range g.s {
			from, to := g.validColumns(s)
			for i := range m {
				row := cols[i*g.q:][:g.q]
				h := (p+i)*g.stride[0] - g.pad[0] + r
				if h < 0 || h >= g.h || from >= to {
					continue
				}
				scatter(plane[h*g.w:][:g.w][from*g.stride[1]-g.pad[1]+s:], row[from:to], g.stride[1])
			}
			if r+s < g.r+g.s-2 {
				cols = cols[stride:]
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

// scatter adds src to every stride-th element of dst.
func scatter[T gemm.Float](dst, src []T, stride int) {
	if stride == 1 {
		dst = dst[:len(src)]
		vector.Add(dst, dst, src)
		return
	}
	for i, v := range src {
		dst[i*stride] += v
	}
}
