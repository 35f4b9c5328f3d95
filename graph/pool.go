package graph

import "fmt"

// Windows that keep the largest pixel or the mean. Operand orders are part of a kind's meaning.
const (
	MaxPool   Kind = "max_pool"    // x[N,C,H,W] -> y; Kernel, Stride, Pad; padding never wins
	MaxPoolDX Kind = "max_pool_dx" // x y dy -> dx; the first element equal to the maximum takes the gradient
	// x[N,C,H,W] -> y indices: where in its window, row by row and without padding, each first element equal to the
	// maximum stands; NoMaximum where the maximum is NaN. A window has at most NoMaximum elements.
	MaxPoolIndices   Kind = "max_pool_indices"
	MaxPoolIndicesDX Kind = "max_pool_indices_dx" // indices dy -> dx, as MaxPoolDX; Extent is (H,W)
	// x[N,C,H,W] -> y; padding counts as zeros, the divisor is R*S; with Inside, the pixels inside of x
	AvgPool     Kind = "avg_pool"
	AvgPoolDX   Kind = "avg_pool_dx"    // x y dy -> dx
	AvgPoolDYDX Kind = "avg_pool_dy_dx" // dy -> dx, as AvgPoolDX; Extent is (H,W)
)

// NoMaximum is the index of a window that has no element equal to its maximum, and the most elements of a window whose
// elements have indices.
const NoMaximum = 255

var pooling = map[Kind]kind{
	MaxPool: {inputs: [2]int{1, 1}, outputs: []int{fresh}, shapes: poolShapes, flops: poolFLOPs,
		attrs: names("kernel", "stride", "pad")},
	MaxPoolDX: {inputs: [2]int{3, 3}, outputs: []int{fresh}, shapes: poolDXShapes, flops: poolDXFLOPs,
		attrs: names("kernel", "stride", "pad")},
	MaxPoolIndices: {inputs: [2]int{1, 1}, outputs: []int{fresh, fresh}, shapes: poolIndicesShapes, flops: poolFLOPs,
		dtypes: poolIndicesTypes, attrs: names("kernel", "stride", "pad"), check: indicesCheck},
	MaxPoolIndicesDX: {inputs: [2]int{2, 2}, outputs: []int{fresh}, shapes: poolIndicesDXShapes, flops: perSecond(1),
		dtypes: indexedBy(0, Uint8), attrs: names("kernel", "stride", "pad", "extent"), check: indicesCheck},
	AvgPool: {inputs: [2]int{1, 1}, outputs: []int{fresh}, shapes: poolShapes, flops: poolFLOPs,
		attrs: names("kernel", "stride", "pad", "inside")},
	AvgPoolDX: {inputs: [2]int{3, 3}, outputs: []int{fresh}, shapes: poolDXShapes, flops: poolDXFLOPs,
		attrs: names("kernel", "stride", "pad", "inside")},
	AvgPoolDYDX: {inputs: [2]int{1, 1}, outputs: []int{fresh}, shapes: poolDYDXShapes, flops: poolDYDXFLOPs,
		attrs: names("kernel", "stride", "pad", "inside", "extent")},
}

func poolShapes(a Attrs, in []Shape) ([]Shape, error) {
	x := in[0]
	if err := checkExtents("x", x, -1, -1, -1, -1); err != nil {
		return nil, err
	}
	p, q, err := slide(a, x[2], x[3])
	if err != nil {
		return nil, err
	}
	return []Shape{{x[0], x[1], p, q}}, nil
}

func poolDXShapes(a Attrs, in []Shape) ([]Shape, error) {
	y, err := poolShapes(a, in[:1])
	if err != nil {
		return nil, err
	}
	if err := firstError(checkExtents("y", in[1], y[0]...), checkExtents("dy", in[2], y[0]...)); err != nil {
		return nil, err
	}
	return []Shape{in[0]}, nil
}

func poolFLOPs(a Attrs, _, out []Shape) int64 {
	return times(int64(out[0].Elements()), int64(a.Kernel[0]*a.Kernel[1]))
}

func poolDXFLOPs(a Attrs, in, _ []Shape) int64 {
	return times(int64(in[1].Elements()), int64(a.Kernel[0]*a.Kernel[1]))
}

func poolIndicesShapes(a Attrs, in []Shape) ([]Shape, error) {
	y, err := poolShapes(a, in)
	if err != nil {
		return nil, err
	}
	return []Shape{y[0], y[0]}, nil
}

func poolIndicesTypes(in []DType, _ int) ([]DType, error) {
	y, err := alike(in, 1)
	return append(y, Uint8), err
}

func poolIndicesDXShapes(a Attrs, in []Shape) ([]Shape, error) {
	if err := checkExtents("indices", in[0], -1, -1, -1, -1); err != nil {
		return nil, err
	}
	x, err := poolDYDXShapes(a, in[1:])
	if err != nil {
		return nil, err
	}
	return x, checkExtents("indices", in[0], in[1]...)
}

// poolDYDXShapes is the rule of a gradient that reads no x: Extent says how large that is.
func poolDYDXShapes(a Attrs, in []Shape) ([]Shape, error) {
	dy := in[0]
	if err := checkExtents("dy", dy, -1, -1, -1, -1); err != nil {
		return nil, err
	}
	x := Shape{dy[0], dy[1], a.Extent[0], a.Extent[1]}
	y, err := poolShapes(a, []Shape{x})
	if err != nil {
		return nil, err
	}
	return []Shape{x}, checkExtents("dy", dy, y[0]...)
}

func poolDYDXFLOPs(a Attrs, in, _ []Shape) int64 {
	return times(int64(in[0].Elements()), int64(a.Kernel[0]*a.Kernel[1]))
}

func indicesCheck(a Attrs) error {
	if a.Kernel[0] > NoMaximum || a.Kernel[1] > NoMaximum || a.Kernel[0]*a.Kernel[1] > NoMaximum {
		return fmt.Errorf("a window of %dx%d has more than %d elements, and indices are bytes", a.Kernel[0],
			a.Kernel[1], NoMaximum)
	}
	return nil
}
