package graph

// Windows that keep the largest pixel or the mean. Operand orders are part of a kind's meaning.
const (
	MaxPool   Kind = "max_pool"    // x[N,C,H,W] -> y; Kernel, Stride, Pad; padding never wins
	MaxPoolDX Kind = "max_pool_dx" // x y dy -> dx; the first element equal to the maximum takes the gradient
	// x[N,C,H,W] -> y; padding counts as zeros, the divisor is R*S; with Inside, the pixels inside of x
	AvgPool   Kind = "avg_pool"
	AvgPoolDX Kind = "avg_pool_dx" // x y dy -> dx
)

var pooling = map[Kind]kind{
	MaxPool: {inputs: [2]int{1, 1}, outputs: []int{fresh}, shapes: poolShapes, flops: poolFLOPs,
		attrs: names("kernel", "stride", "pad")},
	MaxPoolDX: {inputs: [2]int{3, 3}, outputs: []int{fresh}, shapes: poolDXShapes, flops: poolDXFLOPs,
		attrs: names("kernel", "stride", "pad")},
	AvgPool: {inputs: [2]int{1, 1}, outputs: []int{fresh}, shapes: poolShapes, flops: poolFLOPs,
		attrs: names("kernel", "stride", "pad", "inside")},
	AvgPoolDX: {inputs: [2]int{3, 3}, outputs: []int{fresh}, shapes: poolDXShapes, flops: poolDXFLOPs,
		attrs: names("kernel", "stride", "pad", "inside")},
}

func poolShapes(a Attrs, in []Shape) ([]Shape, error) {
	x := in[0]
	if err := wants("x", x, -1, -1, -1, -1); err != nil {
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
	if err := first(wants("y", in[1], y[0]...), wants("dy", in[2], y[0]...)); err != nil {
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
