package kernel

import "tensile/device/cpu/gemm"

// im2col writes the windows of m output rows from p on into cols, CRS rows of m*q elements: row (c,r,s) holds what
// weight (c,r,s) meets at each output. Padding is zero.
func im2col[T gemm.Float](g *convolution, cols, image []T, p, m int) {
	for c := range g.c {
		plane := image[c*g.h*g.w:][:g.h*g.w]
		for r := range g.r {
			for s := range g.s {
				from, to := g.inside(s)
				for i := range m {
					row := cols[:g.q]
					cols = cols[g.q:]
					h := (p+i)*g.stride[0] - g.pad[0] + r
					if h < 0 || h >= g.h || from >= to {
						clear(row)
						continue
					}
					clear(row[:from])
					gather(row[from:to], plane[h*g.w:][:g.w][from*g.stride[1]-g.pad[1]+s:], g.stride[1])
					clear(row[to:])
				}
			}
		}
	}
}

// col2im adds cols, the gradient of the windows that im2col writes, to the image's gradient, in the order of cols.
func col2im[T gemm.Float](g *convolution, image, cols []T, p, m int) {
	for c := range g.c {
		plane := image[c*g.h*g.w:][:g.h*g.w]
		for r := range g.r {
			for s := range g.s {
				from, to := g.inside(s)
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

// inside returns the output columns [from, to) at which weight column s meets the image rather than padding.
func (g *convolution) inside(s int) (from, to int) {
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
