package graph

import (
	"fmt"
	"slices"
)

// Operators that only move elements, and what their gradients add. Operand orders are part of a kind's meaning.
const (
	// two or more tensors, alike but for their extent along Dim, one after the other along it
	Concat Kind = "concat"
	Slice  Kind = "slice" // x -> y: Length elements along Dim from Begin on
	// dy -> dx: dy in its range, zeros elsewhere; Extent[0] is x's extent along Dim
	SliceDX         Kind = "slice_dx"
	SliceAccumulate Kind = "slice_accumulate" // dx dy -> dx + dy within the range, in place in dx; Dim, Begin, Length
	// x[N,C,H,W] -> y[N,C,P,Q], whose pixel (p,q) is x's (p-Pad[0],q-Pad[1]) or zero; Extent is (P,Q); negative Pad
	// crops
	Pad       Kind = "pad"
	Transpose Kind = "transpose" // x[A,M,N,D] -> y[A,N,M,D]; its own inverse
)

var moves = map[Kind]kind{
	Concat: {inputs: [2]int{2, mostParts}, outputs: []int{fresh}, shapes: concatShapes, flops: noArithmetic,
		attrs: names("dim")},
	Slice: {inputs: [2]int{1, 1}, outputs: []int{fresh}, shapes: sliceShapes, flops: noArithmetic,
		traffic: sliceTraffic, attrs: names("dim", "begin", "length")},
	SliceDX: {inputs: [2]int{1, 1}, outputs: []int{fresh}, shapes: sliceDXShapes, flops: noArithmetic,
		attrs: names("dim", "begin", "length", "extent")},
	SliceAccumulate: {inputs: [2]int{2, 2}, outputs: []int{0}, shapes: sliceAccumulateShapes, flops: perSecond(1),
		traffic: sliceAccumulateTraffic, attrs: names("dim", "begin", "length")},
	Pad: {inputs: [2]int{1, 1}, outputs: []int{fresh}, shapes: padShapes, flops: noArithmetic,
		attrs: names("pad", "extent")},
	Transpose: {inputs: [2]int{1, 1}, outputs: []int{fresh}, shapes: transposeShapes, flops: noArithmetic},
}

// mostParts bounds the operands of a concat.
const mostParts = 1 << 16

func concatShapes(a Attrs, in []Shape) ([]Shape, error) {
	if err := a.checkDim("operand", in[0]); err != nil {
		return nil, err
	}
	extent := 0
	for i, s := range in {
		if err := checkExtents(fmt.Sprintf("operand %d", i), s, a.ranged(in[0], -1)...); err != nil {
			return nil, err
		}
		extent += s[a.Dim]
	}
	return []Shape{a.ranged(in[0], extent)}, nil
}

func sliceShapes(a Attrs, in []Shape) ([]Shape, error) {
	x := in[0]
	if err := a.checkDim("x", x); err != nil {
		return nil, err
	}
	return []Shape{a.ranged(x, a.Length)}, a.checkSlice(x[a.Dim])
}

func sliceDXShapes(a Attrs, in []Shape) ([]Shape, error) {
	dy := in[0]
	if err := a.checkDim("dy", dy); err != nil {
		return nil, err
	}
	if err := checkExtents("dy", dy, a.ranged(dy, a.Length)...); err != nil {
		return nil, err
	}
	return []Shape{a.ranged(dy, a.Extent[0])}, a.checkSlice(a.Extent[0])
}

func sliceAccumulateShapes(a Attrs, in []Shape) ([]Shape, error) {
	y, err := sliceShapes(a, in[:1])
	if err != nil {
		return nil, err
	}
	return []Shape{in[0]}, checkExtents("dy", in[1], y[0]...)
}

func sliceTraffic(_ Attrs, _ []Shape, _, out []Bytes) Bytes { return 2 * out[0] }

func sliceAccumulateTraffic(_ Attrs, _ []Shape, in, _ []Bytes) Bytes { return 3 * in[1] }

// checkDim checks that a tensor has the dimension Dim.
func (a Attrs) checkDim(what string, s Shape) error {
	if a.Dim < 0 || a.Dim >= len(s) {
		return fmt.Errorf("%s has shape %v, which has no dimension %d", what, s, a.Dim)
	}
	return nil
}

// ranged returns s with another extent along Dim.
func (a Attrs) ranged(s Shape, extent int) Shape {
	s = slices.Clone(s)
	s[a.Dim] = extent
	return s
}

// checkSlice checks that the range of a slice lies within an extent.
func (a Attrs) checkSlice(extent int) error {
	if a.Begin < 0 || a.Length < 1 || a.Begin > extent-a.Length {
		return fmt.Errorf("%d elements from %d on do not lie within the %d of dimension %d", a.Length, a.Begin, extent,
			a.Dim)
	}
	return nil
}

func padShapes(a Attrs, in []Shape) ([]Shape, error) {
	x := in[0]
	if err := checkExtents("x", x, -1, -1, -1, -1); err != nil {
		return nil, err
	}
	const maxExtent = 1 << 30 // keeps sums of kernels within 64 bits
	for d := range 2 {
		if a.Extent[d] < 1 || a.Extent[d] > maxExtent || a.Pad[d] <= -x[2+d] || a.Pad[d] >= a.Extent[d] {
			return nil, fmt.Errorf("nothing of %dx%d pixels is left when pad %v moves them into extent %v", x[2], x[3],
				a.Pad, a.Extent)
		}
	}
	return []Shape{{x[0], x[1], a.Extent[0], a.Extent[1]}}, nil
}

func transposeShapes(_ Attrs, in []Shape) ([]Shape, error) {
	x := in[0]
	if err := checkExtents("x", x, -1, -1, -1, -1); err != nil {
		return nil, err
	}
	return []Shape{{x[0], x[2], x[1], x[3]}}, nil
}
