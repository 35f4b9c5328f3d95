package kernels

import (
	"strings"
	"testing"

	"tensile/graph"
)

// What kernels count in 32 bits is refused beyond that, in a line, and fits up to there. A dimension that is not made
// of images is counted as one of 2³⁰.
func TestFit(t *testing.T) {
	const (
		giga = 1 << 30
		most = maxIndex
	)
	one := graph.Attrs{Kernel: [2]int{1, 1}, Stride: [2]int{1, 1}}
	three := graph.Attrs{Kernel: [2]int{3, 3}, Stride: [2]int{1, 1}, Pad: [2]int{1, 1}}
	extent := func(a graph.Attrs, h, w int) graph.Attrs {
		a.Extent = [2]int{h, w}
		return a
	}
	strided := func(a graph.Attrs, stride int) graph.Attrs {
		a.Stride = [2]int{stride, stride}
		return a
	}
	grouped := func(a graph.Attrs, groups int) graph.Attrs {
		a.Groups = groups
		return a
	}
	for _, x := range []struct {
		what string
		kind graph.Kind
		a    graph.Attrs
		in   []graph.Shape
		fits bool
	}{
		{"columns", graph.Linear, graph.Attrs{}, []graph.Shape{{1, 4}, {giga, 4}}, true},
		{"columns", graph.Linear, graph.Attrs{}, []graph.Shape{{1, 4}, {giga + 4, 4}}, false},
		{"columns in parts of k", graph.Linear, graph.Attrs{}, []graph.Shape{{1, 1 << 15}, {giga + 4, 1 << 15}}, false},
		{"rows", graph.LinearDX, graph.Attrs{}, []graph.Shape{{giga, 4}, {4, 1}}, true},
		{"rows", graph.LinearDX, graph.Attrs{}, []graph.Shape{{giga + 4, 4}, {4, 1}}, false},
		{"summands", graph.LinearDW, graph.Attrs{}, []graph.Shape{{giga, 1}, {giga, 1}}, true},
		{"summands", graph.LinearDW, graph.Attrs{}, []graph.Shape{{giga + 4, 1}, {giga + 4, 1}}, false},
		{"batch", graph.MatMul, graph.Attrs{}, []graph.Shape{{most, 1, 1}, {most, 1, 1}}, true},
		{"batch", graph.MatMul, graph.Attrs{}, []graph.Shape{{most + 1, 1, 1}, {most + 1, 1, 1}}, false},
		{"tiles", graph.MatMul, graph.Attrs{}, []graph.Shape{{1 << 24, 1 << 11, 1}, {1 << 24, 1, 1 << 11}}, false},
		{"more than an int", graph.MatMul, graph.Attrs{}, []graph.Shape{{1 << 29, 1 << 28, 1}, {1 << 29, 1, 1}}, false},
		{"parts", graph.Linear, graph.Attrs{}, []graph.Shape{{1 << 16, 1 << 15}, {1<<15 - 1, 1 << 15}}, true},
		{"parts", graph.Linear, graph.Attrs{}, []graph.Shape{{1 << 16, 1 << 15}, {1 << 15, 1 << 15}}, false},

		{"pixels", graph.Conv2D, one, []graph.Shape{{16, 4, 1 << 13, 1 << 13}, {4, 4, 1, 1}}, true},
		{"pixels", graph.Conv2D, three, []graph.Shape{{16, 4, 1 << 13, 1 << 13}, {4, 4, 3, 3}}, true},
		{"pixels", graph.Conv2D, three, []graph.Shape{{32, 4, 1 << 13, 1 << 13}, {4, 4, 3, 3}}, false},
		{"pixels", graph.Conv2DDX, extent(three, 1<<13, 1<<13), []graph.Shape{{32, 4, 1 << 13, 1 << 13}, {4, 4, 3, 3}},
			false},
		{"image", graph.Conv2D, three, []graph.Shape{{1, 31, 1 << 13, 1 << 13}, {4, 31, 3, 3}}, true},
		{"image", graph.Conv2D, three, []graph.Shape{{1, 32, 1 << 13, 1 << 13}, {4, 32, 3, 3}}, false},
		{"image", graph.Conv2DDW, three, []graph.Shape{{1, 32, 1 << 13, 1 << 13}, {1, 4, 1 << 13, 1 << 13}}, false},
		{"rows of an image", graph.Conv2D, three, []graph.Shape{{1, 1, giga, 1}, {1, 1, 3, 3}}, true},
		{"rows of an image made", graph.Conv2D,
			graph.Attrs{Kernel: [2]int{5, 1}, Stride: [2]int{1, 1}, Pad: [2]int{4, 0}},
			[]graph.Shape{{1, 1, giga, 1}, {1, 1, 5, 1}}, false},
		{"stride", graph.Conv2D, strided(three, 1<<10), []graph.Shape{{1, 1, 9, 9}, {1, 1, 3, 3}}, true},
		{"stride", graph.Conv2D, strided(three, 1<<11), []graph.Shape{{1, 1, 9, 9}, {1, 1, 3, 3}}, false},
		{"stride", graph.Conv2DDX, extent(strided(three, 1<<11), 9, 9),
			[]graph.Shape{{1, 1, 1, 1}, {1, 1, 3, 3}}, false},
		{"stride of groups", graph.Conv2D, grouped(strided(three, 1<<11), 2), []graph.Shape{{1, 2, 9, 9}, {2, 1, 3, 3}},
			false},
		{"blocks of groups", graph.Conv2D, grouped(three, 1<<20),
			[]graph.Shape{{1 << 11, 1 << 20, 1, 1}, {1 << 20, 1, 3, 3}},
			false},
		{"blocks of groups", graph.Conv2D, grouped(three, 1<<20),
			[]graph.Shape{{1 << 10, 1 << 20, 1, 1}, {1 << 20, 1, 3, 3}},
			true},
		{"channels", graph.BatchNormStats, graph.Attrs{}, []graph.Shape{{1, 1 << 31, 1, 1}}, false},
		{"channels", graph.BiasDB, graph.Attrs{}, []graph.Shape{{1, 1<<31 - 1, 2}}, true},
		{"channels", graph.BiasDB, graph.Attrs{}, []graph.Shape{{1, 1 << 31, 2}}, false},
		{"elements", graph.ReLU, graph.Attrs{}, []graph.Shape{{1 << 40}}, true},
	} {
		out, err := graph.Infer(x.kind, x.a, x.in)
		if err != nil {
			t.Errorf("%s %s %v: %v", x.what, x.kind, x.in, err)
			continue
		}
		err = Fit(x.kind, x.a, x.in, out)
		switch {
		case x.fits && err != nil:
			t.Errorf("%s %s of %v: %v", x.what, x.kind, x.in, err)
		case x.fits:
			Scratch(x.kind, x.a, x.in, out)
		case err == nil:
			t.Errorf("%s: %s of %v fits", x.what, x.kind, x.in)
		case !strings.HasPrefix(err.Error(), "kernels: ") || strings.Contains(err.Error(), "\n"):
			t.Errorf("%s: %v", x.what, err)
		}
	}
}
