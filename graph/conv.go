package graph

import (
	"fmt"
	"slices"
)

// Convolutions of images and their gradients. Operand orders are part of a kind's meaning.
const (
	// x[N,C,H,W] w[K,C/G,R,S] (b[K]) -> y[N,K,P,Q]; Kernel is (R,S), Groups G; 0 groups are 1
	Conv2D   Kind = "conv2d"
	Conv2DDW Kind = "conv2d_dw" // x dy -> dw
	Conv2DDX Kind = "conv2d_dx" // dy w -> dx; Attrs.Extent is (H,W)
)

var convolutions = map[Kind]kind{
	Conv2D: {inputs: [2]int{2, 3}, outputs: []int{fresh}, shapes: convShapes, flops: convFLOPs,
		attrs: names("kernel", "stride", "pad", "groups")},
	Conv2DDW: {inputs: [2]int{2, 2}, outputs: []int{fresh}, shapes: convDWShapes, flops: convDWFLOPs,
		attrs: names("kernel", "stride", "pad", "groups")},
	Conv2DDX: {inputs: [2]int{2, 2}, outputs: []int{fresh}, shapes: convDXShapes, flops: convDXFLOPs,
		attrs: names("kernel", "stride", "pad", "groups", "extent")},
}

func convShapes(a Attrs, in []Shape) ([]Shape, error) {
	x, w := in[0], in[1]
	if err := firstError(checkExtents("x", x, -1, -1, -1, -1), checkExtents("w", w, -1, -1, -1, -1)); err != nil {
		return nil, err
	}
	groups, err := a.groups(x[1], w[0])
	if err != nil {
		return nil, err
	}
	if err := checkExtents("w", w, -1, x[1]/groups, a.Kernel[0], a.Kernel[1]); err != nil {
		return nil, err
	}
	if len(in) == 3 {
		if err := checkExtents("b", in[2], w[0]); err != nil {
			return nil, err
		}
	}
	p, q, err := slide(a, x[2], x[3])
	if err != nil {
		return nil, err
	}
	return []Shape{{x[0], w[0], p, q}}, nil
}

func convDWShapes(a Attrs, in []Shape) ([]Shape, error) {
	x, dy := in[0], in[1]
	if err := firstError(checkExtents("x", x, -1, -1, -1, -1), checkExtents("dy", dy, -1, -1, -1, -1)); err != nil {
		return nil, err
	}
	p, q, err := slide(a, x[2], x[3])
	if err != nil {
		return nil, err
	}
	if err := checkExtents("dy", dy, x[0], -1, p, q); err != nil {
		return nil, err
	}
	groups, err := a.groups(x[1], dy[1])
	if err != nil {
		return nil, err
	}
	return []Shape{{dy[1], x[1] / groups, a.Kernel[0], a.Kernel[1]}}, nil
}

func convDXShapes(a Attrs, in []Shape) ([]Shape, error) {
	dy, w := in[0], in[1]
	if err := firstError(checkExtents("dy", dy, -1, -1, -1, -1), checkExtents("w", w, -1, -1, a.Kernel[0],
		a.Kernel[1])); err != nil {
		return nil, err
	}
	p, q, err := slide(a, a.Extent[0], a.Extent[1])
	if err != nil {
		return nil, err
	}
	if err := checkExtents("dy", dy, -1, w[0], p, q); err != nil {
		return nil, err
	}
	groups, err := a.groups(w[0], w[0])
	if err != nil {
		return nil, err
	}
	return []Shape{{dy[0], w[1] * groups, a.Extent[0], a.Extent[1]}}, nil
}

// groups returns the number of groups that divide c channels of the input and k of the output.
func (a Attrs) groups(c, k int) (int, error) {
	g := max(1, a.Groups)
	if a.Groups < 0 || c%g != 0 || k%g != 0 {
		return 0, fmt.Errorf("%d groups do not divide %d channels into %d", a.Groups, c, k)
	}
	return g, nil
}

// convolve is the arithmetic of a convolution with output y, in which each filter reads C channels.
func convolve(a Attrs, y Shape, c int) int64 {
	return times(2, int64(y.Elements()), int64(c), int64(a.Kernel[0]*a.Kernel[1]))
}

func convFLOPs(a Attrs, in, out []Shape) int64 { return convolve(a, out[0], in[1][1]) }

func convDWFLOPs(a Attrs, in, out []Shape) int64 { return convolve(a, in[1], out[0][1]) }

func convDXFLOPs(a Attrs, in, _ []Shape) int64 { return convolve(a, in[0], in[1][1]) }

// slide returns the extents of a window sliding over h by w.
func slide(a Attrs, h, w int) (p, q int, err error) {
	const maxExtent = 1 << 30 // keeps sums below within 64 bits
	for _, v := range slices.Concat(a.Kernel[:], a.Stride[:], a.Pad[:], []int{h, w}) {
		if v > maxExtent {
			return 0, 0, fmt.Errorf("kernel %v, stride %v, pad %v or extent %dx%d is beyond %d", a.Kernel, a.Stride,
				a.Pad, h, w, maxExtent)
		}
	}
	if a.Kernel[0] < 1 || a.Kernel[1] < 1 || a.Stride[0] < 1 || a.Stride[1] < 1 || a.Pad[0] < 0 || a.Pad[1] < 0 {
		return 0, 0, fmt.Errorf("kernel %v and stride %v must be positive, pad %v not negative", a.Kernel, a.Stride,
			a.Pad)
	}
	if a.Pad[0] >= a.Kernel[0] || a.Pad[1] >= a.Kernel[1] {
		return 0, 0, fmt.Errorf("pad %v must be smaller than kernel %v", a.Pad, a.Kernel)
	}
	p, q = h+2*a.Pad[0]-a.Kernel[0], w+2*a.Pad[1]-a.Kernel[1]
	if p < 0 || q < 0 {
		return 0, 0, fmt.Errorf("a window of %v does not fit into %dx%d with pad %v", a.Kernel, h, w, a.Pad)
	}
	return p/a.Stride[0] + 1, q/a.Stride[1] + 1, nil
}
