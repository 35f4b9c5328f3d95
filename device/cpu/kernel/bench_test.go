package kernel

import (
	"fmt"
	"testing"

	"tensile/graph"
)

// BenchmarkPointwise reports nanoseconds an element of kinds that stream through memory.
func BenchmarkPointwise(b *testing.B) {
	image := graph.Shape{8, 64, 32, 32}
	one, rng := graph.Shape{64}, randoms(1)
	for _, c := range []struct {
		kind   graph.Kind
		attrs  graph.Attrs
		shapes []graph.Shape
	}{
		{graph.ReLU, graph.Attrs{}, []graph.Shape{image}},
		{graph.ReLUDX, graph.Attrs{}, []graph.Shape{image, image, image}},
		{graph.Add, graph.Attrs{}, []graph.Shape{image, image}},
		{graph.Accumulate, graph.Attrs{}, []graph.Shape{image, image}},
		{graph.Dropout, graph.Attrs{Rate: 0.5}, []graph.Shape{image}},
		{graph.SGD, graph.Attrs{LearningRate: 1e-9}, []graph.Shape{image, image}},
		{graph.Adam, graph.Attrs{LearningRate: 1e-9, Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8},
			[]graph.Shape{image, image, image, image}},
		{graph.BatchNormStats, graph.Attrs{}, []graph.Shape{image}},
		{graph.BatchNorm, graph.Attrs{Epsilon: 1e-5}, []graph.Shape{image, one, one, one, one}},
		{graph.BatchNormGrad, graph.Attrs{Epsilon: 1e-5}, []graph.Shape{image, one, one, one, image}},
		{graph.BiasDB, graph.Attrs{}, []graph.Shape{image}},
		{graph.LRN, lrnAttrs, []graph.Shape{image}},
		{graph.LRNDX, lrnAttrs, []graph.Shape{image, image, image}},
		{graph.MaxPool, poolAttrs, []graph.Shape{image}},
		{graph.MaxPoolDX, poolAttrs, []graph.Shape{image, {8, 64, 16, 16}, {8, 64, 16, 16}}},
		{graph.AvgPool, poolAttrs, []graph.Shape{image}},
		{graph.AvgPoolDX, poolAttrs, []graph.Shape{image, {8, 64, 16, 16}, {8, 64, 16, 16}}},
	} {
		b.Run("kind="+string(c.kind), func(b *testing.B) {
			var in []tensor[float32]
			for i, s := range c.shapes {
				x := normal[float32](rng, s...)
				if i > 1 && (c.kind == graph.Adam || len(s) == 1) {
					x = positive[float32](rng, s...)
				}
				in = append(in, x)
			}
			k := call(b, job{}, c.kind, c.attrs, in...)
			for b.Loop() {
				Run(k)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(image.Elements()), "ns/element")
		})
	}
}

// BenchmarkConvolution reports GFLOP/s of the three convolution kinds in each of their variants.
func BenchmarkConvolution(b *testing.B) {
	for _, c := range []struct {
		n, c, h, k int
		attrs      graph.Attrs
	}{
		{8, 64, 32, 64, window([2]int{3, 3}, [2]int{1, 1}, [2]int{1, 1})},
		{8, 64, 32, 256, window([2]int{1, 1}, [2]int{1, 1}, [2]int{0, 0})},
		{8, 512, 7, 512, window([2]int{3, 3}, [2]int{1, 1}, [2]int{1, 1})},
		{8, 64, 32, 64, inGroups(window([2]int{5, 5}, [2]int{1, 1}, [2]int{2, 2}), 64)},
		{8, 64, 32, 64, inGroups(window([2]int{3, 3}, [2]int{2, 2}, [2]int{1, 1}), 64)},
		{1, 3, 224, 64, window([2]int{7, 7}, [2]int{2, 2}, [2]int{3, 3})},
	} {
		rng, a := randoms(1), c.attrs
		x, w := normal[float32](rng, c.n, c.c, c.h, c.h), normal[float32](rng, c.k, c.c/max(1, a.Groups), a.Kernel[0],
			a.Kernel[1])
		for _, threads := range []int{1, 2} {
			j := job{engine: engine(b, threads)}
			dy := normal[float32](rng, call(b, j, graph.Conv2D, a, x, w).OutShapes[0]...)
			flops := 2 * float64(len(dy.data)*c.c/max(1, a.Groups)*a.Kernel[0]*a.Kernel[1])
			for _, k := range []*Call[float32]{call(b, j, graph.Conv2D, a, x, w), call(b, j, graph.Conv2DDW, a, x, dy),
				call(b, j, graph.Conv2DDX, onto(a, c.h, c.h), dy, w)} {
				for _, v := range Variants(k.Kind, k.Attrs, k.InShapes, k.OutShapes) {
					name := fmt.Sprintf("kind=%s/x=%dx%dx%dx%d/w=%dx%d/groups=%d/threads=%d/variant=%s", k.Kind,
						c.n, c.c, c.h, c.h, c.k, a.Kernel[0], max(1, a.Groups), threads, v.Name)
					b.Run(name, func(b *testing.B) {
						k.Variant = v.Name
						for b.Loop() {
							Run(k)
						}
						b.ReportMetric(flops*float64(b.N)/1e9/b.Elapsed().Seconds(), "GFLOP/s")
					})
				}
			}
		}
	}
}
