package graph

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
)

// wants checks that a shape has the given extents; a negative extent matches any.
func wants(what string, s Shape, extents ...int) error {
	ok := len(s) == len(extents)
	for i := 0; ok && i < len(s); i++ {
		ok = extents[i] < 0 || s[i] == extents[i]
	}
	if !ok {
		return fmt.Errorf("%s has shape %v, want %v (-1: any)", what, s, extents)
	}
	return nil
}

// first returns the first error there is.
func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// slide returns the extents of a window sliding over h by w.
func slide(a Attrs, h, w int) (p, q int, err error) {
	const most = 1 << 30 // keeps sums below within 64 bits
	for _, v := range slices.Concat(a.Kernel[:], a.Stride[:], a.Pad[:], []int{h, w}) {
		if v > most {
			return 0, 0, fmt.Errorf("kernel %v, stride %v, pad %v or extent %dx%d is beyond %d", a.Kernel, a.Stride, a.Pad, h, w, most)
		}
	}
	if a.Kernel[0] < 1 || a.Kernel[1] < 1 || a.Stride[0] < 1 || a.Stride[1] < 1 || a.Pad[0] < 0 || a.Pad[1] < 0 {
		return 0, 0, fmt.Errorf("kernel %v and stride %v must be positive, pad %v not negative", a.Kernel, a.Stride, a.Pad)
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

func convShapes(a Attrs, in []Shape) ([]Shape, error) {
	x, w := in[0], in[1]
	if err := first(wants("x", x, -1, -1, -1, -1), wants("w", w, -1, -1, -1, -1)); err != nil {
		return nil, err
	}
	groups, err := a.groups(x[1], w[0])
	if err != nil {
		return nil, err
	}
	if err := wants("w", w, -1, x[1]/groups, a.Kernel[0], a.Kernel[1]); err != nil {
		return nil, err
	}
	if len(in) == 3 {
		if err := wants("b", in[2], w[0]); err != nil {
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
	if err := first(wants("x", x, -1, -1, -1, -1), wants("dy", dy, -1, -1, -1, -1)); err != nil {
		return nil, err
	}
	p, q, err := slide(a, x[2], x[3])
	if err != nil {
		return nil, err
	}
	if err := wants("dy", dy, x[0], -1, p, q); err != nil {
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
	if err := first(wants("dy", dy, -1, -1, -1, -1), wants("w", w, -1, -1, a.Kernel[0], a.Kernel[1])); err != nil {
		return nil, err
	}
	p, q, err := slide(a, a.Extent[0], a.Extent[1])
	if err != nil {
		return nil, err
	}
	if err := wants("dy", dy, -1, w[0], p, q); err != nil {
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

func convFLOPs(a Attrs, in, out []Shape) int64   { return convolve(a, out[0], in[1][1]) }
func convDWFLOPs(a Attrs, in, out []Shape) int64 { return convolve(a, in[1], out[0][1]) }
func convDXFLOPs(a Attrs, in, _ []Shape) int64   { return convolve(a, in[0], in[1][1]) }

// times multiplies counts and stays at the largest value there is when the product is beyond it.
func times(factors ...int64) int64 {
	product := int64(1)
	for _, f := range factors {
		high, low := bits.Mul64(uint64(product), uint64(f))
		if high != 0 || low > math.MaxInt64 {
			return math.MaxInt64
		}
		product = int64(low)
	}
	return product
}

func linearShapes(_ Attrs, in []Shape) ([]Shape, error) {
	x, w := in[0], in[1]
	if err := first(wants("x", x, -1, -1), wants("w", w, -1, -1)); err != nil {
		return nil, err
	}
	if err := wants("w", w, -1, x[1]); err != nil {
		return nil, err
	}
	if len(in) == 3 {
		if err := wants("b", in[2], w[0]); err != nil {
			return nil, err
		}
	}
	return []Shape{{x[0], w[0]}}, nil
}

func linearDWShapes(_ Attrs, in []Shape) ([]Shape, error) {
	x, dy := in[0], in[1]
	if err := wants("x", x, -1, -1); err != nil {
		return nil, err
	}
	if err := wants("dy", dy, x[0], -1); err != nil {
		return nil, err
	}
	return []Shape{{dy[1], x[1]}}, nil
}

func linearDXShapes(_ Attrs, in []Shape) ([]Shape, error) {
	dy, w := in[0], in[1]
	if err := wants("w", w, -1, -1); err != nil {
		return nil, err
	}
	if err := wants("dy", dy, -1, w[0]); err != nil {
		return nil, err
	}
	return []Shape{{dy[0], w[1]}}, nil
}

func linearFLOPs(_ Attrs, in, out []Shape) int64   { return matrix(out[0], in[0][1]) }
func linearDWFLOPs(_ Attrs, in, out []Shape) int64 { return matrix(out[0], in[0][0]) }
func linearDXFLOPs(_ Attrs, in, out []Shape) int64 { return matrix(out[0], in[0][1]) }

// matrix is the arithmetic of a product with this output, summed over k.
func matrix(out Shape, k int) int64 { return times(2, int64(out.Elements()), int64(k)) }

func biasShapes(_ Attrs, in []Shape) ([]Shape, error) {
	if len(in[0]) < 2 {
		return nil, fmt.Errorf("dy has shape %v, want at least two dimensions", in[0])
	}
	return []Shape{{in[0][1]}}, nil
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

func statsShapes(_ Attrs, in []Shape) ([]Shape, error) {
	if err := wants("x", in[0], -1, -1, -1, -1); err != nil {
		return nil, err
	}
	c := in[0][1]
	return []Shape{{c}, {c}}, nil
}

func normShapes(_ Attrs, in []Shape) ([]Shape, error) {
	x := in[0]
	if err := wants("x", x, -1, -1, -1, -1); err != nil {
		return nil, err
	}
	for i, what := range []string{"mean", "variance", "gamma", "beta"} {
		if err := wants(what, in[i+1], x[1]); err != nil {
			return nil, err
		}
	}
	return []Shape{x}, nil
}

func normGradShapes(_ Attrs, in []Shape) ([]Shape, error) {
	x := in[0]
	if err := wants("x", x, -1, -1, -1, -1); err != nil {
		return nil, err
	}
	for i, what := range []string{"mean", "variance", "gamma"} {
		if err := wants(what, in[i+1], x[1]); err != nil {
			return nil, err
		}
	}
	if err := wants("dy", in[4], x...); err != nil {
		return nil, err
	}
	return []Shape{x, {x[1]}, {x[1]}}, nil
}

func updateShapes(_ Attrs, in []Shape) ([]Shape, error) {
	for _, s := range in[1:] {
		if err := wants("statistic", s, in[0]...); err != nil {
			return nil, err
		}
	}
	return []Shape{in[2], in[3]}, nil
}

func xentShapes(_ Attrs, in []Shape) ([]Shape, error) {
	if err := wants("logits", in[0], -1, -1); err != nil {
		return nil, err
	}
	if err := wants("labels", in[1], in[0][0]); err != nil {
		return nil, err
	}
	return []Shape{{1}, in[0]}, nil
}

func xentDXShapes(_ Attrs, in []Shape) ([]Shape, error) {
	if err := wants("probabilities", in[0], -1, -1); err != nil {
		return nil, err
	}
	if err := wants("labels", in[1], in[0][0]); err != nil {
		return nil, err
	}
	return []Shape{in[0]}, nil
}

// optimizerShapes is the rule of an update of w by dw with more state of the same shape.
func optimizerShapes(inputs, outputs int) func(Attrs, []Shape) ([]Shape, error) {
	return func(_ Attrs, in []Shape) ([]Shape, error) {
		for _, s := range in[1:inputs] {
			if err := wants("operand", s, in[0]...); err != nil {
				return nil, err
			}
		}
		return slices.Repeat([]Shape{in[0]}, outputs), nil
	}
}

// likeFirst is the rule of an elementwise op: all operands and outputs are alike.
func likeFirst(outputs int) func(Attrs, []Shape) ([]Shape, error) {
	return func(_ Attrs, in []Shape) ([]Shape, error) {
		for _, s := range in[1:] {
			if err := wants("operand", s, in[0]...); err != nil {
				return nil, err
			}
		}
		return slices.Repeat([]Shape{in[0]}, outputs), nil
	}
}

func perInput(n int64) func(Attrs, []Shape, []Shape) int64 {
	return func(_ Attrs, in, _ []Shape) int64 { return times(n, int64(in[0].Elements())) }
}

func perOutput(n int64) func(Attrs, []Shape, []Shape) int64 {
	return func(_ Attrs, _, out []Shape) int64 { return times(n, int64(out[0].Elements())) }
}
