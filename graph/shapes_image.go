package graph

import "fmt"

func padShapes(a Attrs, in []Shape) ([]Shape, error) {
	x := in[0]
	if err := wants("x", x, -1, -1, -1, -1); err != nil {
		return nil, err
	}
	const most = 1 << 30 // keeps sums of kernels within 64 bits
	for d := range 2 {
		if a.Extent[d] < 1 || a.Extent[d] > most || a.Pad[d] <= -x[2+d] || a.Pad[d] >= a.Extent[d] {
			return nil, fmt.Errorf("nothing of %dx%d pixels is left when pad %v moves them into extent %v", x[2], x[3], a.Pad, a.Extent)
		}
	}
	return []Shape{{x[0], x[1], a.Extent[0], a.Extent[1]}}, nil
}

func lrnShapes(_ Attrs, in []Shape) ([]Shape, error) {
	return []Shape{in[0]}, wants("x", in[0], -1, -1, -1, -1)
}

func lrnDXShapes(_ Attrs, in []Shape) ([]Shape, error) {
	x := in[0]
	return []Shape{x}, first(wants("x", x, -1, -1, -1, -1), wants("y", in[1], x...), wants("dy", in[2], x...))
}

// A square root or two count as one operation each.
func lrnFLOPs(a Attrs, _, out []Shape) int64 {
	return times(2*int64(a.Length)+6, int64(out[0].Elements()))
}
func lrnDXFLOPs(a Attrs, _, out []Shape) int64 {
	return times(3*int64(a.Length)+12, int64(out[0].Elements()))
}
