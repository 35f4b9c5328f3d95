package kernel

import (
	"slices"
	"testing"

	"tensile/graph"
)

// counting returns a tensor of 0, 1, 2 ... from some number on.
func counting(from int, shape ...int) tensor[float32] {
	x := tensor[float32]{shape, make([]float32, graph.Shape(shape).Elements())}
	for i := range x.data {
		x.data[i] = float32(from + i)
	}
	return x
}

// at returns the element of x at an index per dimension.
func at(x tensor[float32], index []int) float32 {
	i := 0
	for d, extent := range x.shape {
		i = i*extent + index[d]
	}
	return x.data[i]
}

// each calls visit with every index of a shape, in order.
func each(shape graph.Shape, visit func(index []int)) {
	index := make([]int, len(shape))
	for i := range shape.Elements() {
		for d := len(shape) - 1; d >= 0; d-- {
			index[d] = i % shape[d]
			i /= shape[d]
		}
		visit(index)
	}
}

func shifted(index []int, dim, by int) []int {
	index = slices.Clone(index)
	index[dim] += by
	return index
}

var cuts = []struct {
	shape              graph.Shape
	dim, begin, length int
}{
	{graph.Shape{7}, 0, 2, 3}, {graph.Shape{4, 5}, 0, 1, 2}, {graph.Shape{4, 5}, 1, 0, 5}, {graph.Shape{2, 3, 4, 5}, 0,
		1, 1},
	{graph.Shape{2, 3, 4, 5}, 1, 1, 2}, {graph.Shape{2, 3, 4, 5}, 2, 0, 3}, {graph.Shape{2, 3, 4, 5}, 3, 4, 1},
	{graph.Shape{2, 1, 2, 2, 3}, 4, 1, 2},
}

// Each element of a slice, of its gradient and of a gradient that is added to stands where indices say.
func TestSliceAgainstIndices(t *testing.T) {
	for _, c := range cuts {
		a := graph.Attrs{Dim: c.dim, Begin: c.begin, Length: c.length}
		x := counting(1, c.shape...)
		y := apply(t, job{}, graph.Slice, a, x)[0]
		each(y.shape, func(i []int) {
			if got, want := at(y, i), at(x, shifted(i, c.dim, c.begin)); got != want {
				t.Errorf("%+v: y%v = %v, want %v", c, i, got, want)
			}
		})
		dy := counting(1000, y.shape...)
		sum := apply(t, job{}, graph.SliceAccumulate, a, x, dy)[0]
		a.Extent[0] = c.shape[c.dim]
		dx := apply(t, job{}, graph.SliceDX, a, dy)[0]
		each(x.shape, func(i []int) {
			want := float32(0)
			if i[c.dim] >= c.begin && i[c.dim] < c.begin+c.length {
				want = at(dy, shifted(i, c.dim, -c.begin))
			}
			if got := at(dx, i); got != want {
				t.Errorf("%+v: dx%v = %v, want %v", c, i, got, want)
			}
			if got := at(sum, i); got != want+at(x, i) {
				t.Errorf("%+v: sum%v = %v, want %v", c, i, got, want+at(x, i))
			}
		})
	}
}

// The parts of a concat are its slices.
func TestConcatOfSlices(t *testing.T) {
	for _, c := range cuts {
		x := counting(1, c.shape...)
		var parts []tensor[float32]
		ends := []int{0, c.begin, c.begin + c.length, c.shape[c.dim]}
		for i, begin := range ends[:3] {
			if length := ends[i+1] - begin; length > 0 {
				parts = append(parts, apply(t, job{}, graph.Slice, graph.Attrs{Dim: c.dim, Begin: begin,
					Length: length}, x)[0])
			}
		}
		if len(parts) < 2 {
			continue
		}
		if y := apply(t, job{}, graph.Concat, graph.Attrs{Dim: c.dim}, parts...)[0]; !slices.Equal(y.shape, x.shape) ||
			!slices.Equal(y.data, x.data) {
			t.Errorf("%+v: %d parts joined are %v, want %v", c, len(parts), y, x)
		}
	}
}
