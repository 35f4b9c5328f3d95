package graph

import (
	"fmt"
	"slices"
)

// mostParts bounds the operands of a concat.
const mostParts = 1 << 16

// traffic holds the kinds that do not read or write each of their operands from end to end.
var traffic = map[Kind]func(a Attrs, in, out []Shape) Bytes{
	Slice:           func(_ Attrs, _, out []Shape) Bytes { return 2 * out[0].Bytes() },
	SliceAccumulate: func(_ Attrs, in, _ []Shape) Bytes { return 3 * in[1].Bytes() },
	Embedding:       func(_ Attrs, in, out []Shape) Bytes { return in[1].Bytes() + 2*out[0].Bytes() },
}

// none is the arithmetic of kinds that only copy.
func none(Attrs, []Shape, []Shape) int64 { return 0 }

// perSecond is the arithmetic of kinds that do the same for every element of their second operand.
func perSecond(n int64) func(Attrs, []Shape, []Shape) int64 {
	return func(_ Attrs, in, _ []Shape) int64 { return times(n, int64(in[1].Elements())) }
}

// along checks that a tensor has the dimension Dim.
func (a Attrs) along(what string, s Shape) error {
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

func concatShapes(a Attrs, in []Shape) ([]Shape, error) {
	if err := a.along("operand", in[0]); err != nil {
		return nil, err
	}
	extent := 0
	for i, s := range in {
		if err := wants(fmt.Sprintf("operand %d", i), s, a.ranged(in[0], -1)...); err != nil {
			return nil, err
		}
		extent += s[a.Dim]
	}
	return []Shape{a.ranged(in[0], extent)}, nil
}

// within checks that the range of a slice lies within an extent.
func (a Attrs) within(extent int) error {
	if a.Begin < 0 || a.Length < 1 || a.Begin > extent-a.Length {
		return fmt.Errorf("%d elements from %d on do not lie within the %d of dimension %d", a.Length, a.Begin, extent, a.Dim)
	}
	return nil
}

func sliceShapes(a Attrs, in []Shape) ([]Shape, error) {
	x := in[0]
	if err := a.along("x", x); err != nil {
		return nil, err
	}
	return []Shape{a.ranged(x, a.Length)}, a.within(x[a.Dim])
}

func sliceDXShapes(a Attrs, in []Shape) ([]Shape, error) {
	dy := in[0]
	if err := a.along("dy", dy); err != nil {
		return nil, err
	}
	if err := wants("dy", dy, a.ranged(dy, a.Length)...); err != nil {
		return nil, err
	}
	return []Shape{a.ranged(dy, a.Extent[0])}, a.within(a.Extent[0])
}

func sliceAccumulateShapes(a Attrs, in []Shape) ([]Shape, error) {
	y, err := sliceShapes(a, in[:1])
	if err != nil {
		return nil, err
	}
	return []Shape{in[0]}, wants("dy", in[1], y[0]...)
}
