package kernel

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"tensile/device/cpu/gemm"
	"tensile/graph"
	"tensile/internal/long"
)

// slowConv is the oracle: seven loops in float64.
func slowConv[T gemm.Float](a graph.Attrs, x, w, b tensor[T], out graph.Shape) []float64 {
	at := func(t tensor[T], n, c, h, w int) float64 {
		if h < 0 || w < 0 || h >= t.shape[2] || w >= t.shape[3] {
			return 0
		}
		return float64(t.data[((n*t.shape[1]+c)*t.shape[2]+h)*t.shape[3]+w])
	}
	groups := max(1, a.Groups)
	var y []float64
	for n := range out[0] {
		for k := range out[1] {
			for p := range out[2] {
				for q := range out[3] {
					sum := float64(b.data[k])
					for c := range x.shape[1] {
						for r := range a.Kernel[0] {
							for s := range a.Kernel[1] {
								if c/w.shape[1] != k/(w.shape[0]/groups) {
									continue // of another group
								}
								sum += at(w, k, c%w.shape[1], r, s) * at(x, n, c, p*a.Stride[0]-a.Pad[0]+r,
									q*a.Stride[1]-a.Pad[1]+s)
							}
						}
					}
					y = append(y, sum)
				}
			}
		}
	}
	return y
}

func checkConv[T gemm.Float](t *testing.T, e *gemm.Engine, seed uint64, a graph.Attrs, n, c, h, w, k int,
	tolerance float64) {
	t.Helper()
	rng, j := randoms(seed), job{engine: e}
	groups := max(1, a.Groups)
	x, filter := normal[T](rng, n, c, h, w), normal[T](rng, k, c/groups, a.Kernel[0], a.Kernel[1])
	bias := normal[T](rng, k)
	y := apply(t, j, graph.Conv2D, a, x, filter, bias)[0]
	near(t, "y with bias", y.data, slowConv(a, x, filter, bias, y.shape), tolerance)
	clear(bias.data)
	y = apply(t, j, graph.Conv2D, a, x, filter)[0]
	near(t, "y", y.data, slowConv(a, x, filter, bias, y.shape), tolerance)
}

func TestConvolutionAgainstSlow(t *testing.T) {
	e := engine(t, 1)
	forEachGeometry(t, func(t *testing.T, i int) {
		g := geometries[i]
		checkConv[float32](t, e, 1, g.attrs, g.n, g.c, g.h, g.w, g.k, 1e-5)
		checkConv[float64](t, e, 1, g.attrs, g.n, g.c, g.h, g.w, g.k, 1e-13)
		for _, groups := range []int{2, 3} {
			a := inGroups(g.attrs, groups)
			checkConv[float32](t, e, 2, a, g.n, groups*g.c, g.h, g.w, groups*g.k, 1e-5)
			checkConv[float64](t, e, 2, a, g.n, groups*g.c, g.h, g.w, groups*g.k, 1e-13)
			checkConv[float32](t, e, 3, a, g.n, groups, g.h, g.w, groups*g.k, 1e-5) // depthwise
		}
	})
}

// A convolution of several chunks an image, the last one shorter, agrees with the oracle, and its gradients are the
// adjoint of it: <dy, conv(x, w)> is linear in x and in w.
func TestConvolutionInChunks(t *testing.T) {
	a := window([2]int{3, 3}, [2]int{1, 1}, [2]int{1, 1})
	rng, j := randoms(8), job{engine: engine(t, 1)}
	x, w, b := normal[float64](rng, 2, 64, 20, 50), normal[float64](rng, 2, 64, 3, 3), normal[float64](rng, 2)
	g := convolutionOf(a, x.shape, graph.Shape{2, 2, 20, 50})
	if _, rows := g.chunk(); rows >= 20 || 20%rows == 0 {
		t.Fatalf("%d of 20 rows a chunk do not test what they should", rows)
	}
	y := apply(t, j, graph.Conv2D, a, x, w, b)[0]
	near(t, "y", y.data, slowConv(a, x, w, b, y.shape), 1e-13)

	dy := normal[float64](rng, y.shape...)
	clear(b.data)
	want := dot(apply(t, j, graph.Conv2D, a, x, w, b)[0], dy)
	near(t, "<dw,w>", []float64{dot(apply(t, j, graph.Conv2DDW, a, x, dy)[0], w)}, []float64{want}, 1e-12)
	a.Extent = [2]int{20, 50}
	near(t, "<dx,x>", []float64{dot(apply(t, j, graph.Conv2DDX, a, dy, w)[0], x)}, []float64{want}, 1e-12)
}

// convolutionsOf are the three calls of a convolution with normal operands: forward with a bias, and both backward
// halves.
func convolutionsOf[T gemm.Float](t *testing.T, j job, seed uint64, a graph.Attrs, x graph.Shape,
	filters int) []*Call[T] {
	t.Helper()
	rng := randoms(seed)
	filter := graph.Shape{filters, x[1] / max(1, a.Groups), a.Kernel[0], a.Kernel[1]}
	y, err := graph.Infer(graph.Conv2D, a, []graph.Shape{x, filter})
	if err != nil {
		t.Fatal(err)
	}
	back := a
	back.Extent = [2]int{x[2], x[3]}
	return []*Call[T]{
		call(t, j, graph.Conv2D, a, normal[T](rng, x...), normal[T](rng, filter...), normal[T](rng, filters)),
		call(t, j, graph.Conv2DDW, a, normal[T](rng, x...), normal[T](rng, y[0]...)),
		call(t, j, graph.Conv2DDX, back, normal[T](rng, y[0]...), normal[T](rng, filter...)),
	}
}

// checkVariants compares the gradient of the input in every variant, and in those that are offered for larger ones
// alone, with that of the first, to the bit.
func checkVariants[T gemm.Float](t *testing.T, j job, seed uint64, a graph.Attrs, x graph.Shape, filters int) {
	t.Helper()
	first := convolutionsOf[T](t, j, seed, a, x, filters)[2]
	Run(first)
	for _, l := range layouts[1:] {
		c := convolutionsOf[T](t, j, seed, a, x, filters)[2]
		need := kernels32[c.Kind].scratch(l.name, c.Attrs, c.InShapes, c.OutShapes)
		c.Variant, c.Scratch = l.name, c.Scratch[:need]
		Run(c)
		if !sameBits(first.Out[0], c.Out[0]) {
			t.Fatalf("seed %d: %s of %v by %d filters of %+v with %d threads: %s gives other bits than %s", seed,
				c.Kind, x, filters, a, j.engine.Crew().Threads(), l.name, layouts[0].name)
		}
	}
}

// smallLayouts has the layouts of a test be small enough for small convolutions to be divided.
func smallLayouts(t *testing.T, elements ...int) {
	before := layouts
	t.Cleanup(func() { layouts = before })
	layouts = layouts[:1:1]
	for _, n := range elements {
		layouts = append(layouts, layout{name: fmt.Sprint(n), elements: n})
	}
}

// Every variant of a convolution has the bits of the first: random shapes, both element types, one to three threads,
// within layouts so small that channels are divided in every way. So have all three kinds on any number of threads.
func TestVariantsKeepBits(t *testing.T) {
	smallLayouts(t, 900, 40, 1)
	want := make(map[string][]float32)
	for threads := 1; threads <= 3; threads++ {
		e := engine(t, threads)
		for seed := range long.Rounds(10, 60) {
			r := rand.New(rand.NewPCG(seed, 7))
			a := window([2]int{1 + r.IntN(5), 1 + r.IntN(5)}, [2]int{1 + r.IntN(3), 1 + r.IntN(3)}, [2]int{})
			a.Pad = [2]int{r.IntN(a.Kernel[0]), r.IntN(a.Kernel[1])}
			x, filters := graph.Shape{1 + r.IntN(3), 1 + r.IntN(20), 5 + r.IntN(14), 5 + r.IntN(14)}, 1+r.IntN(70)
			if groups := 1 + r.IntN(3); r.IntN(3) == 0 {
				a.Groups, x[1], filters = groups, groups*x[1], groups*(1+filters/groups)
			}
			checkVariants[float32](t, job{engine: e}, seed, a, x, filters)
			if seed%5 == 0 {
				checkVariants[float64](t, job{engine: e}, seed, a, x, filters)
			}
			for _, c := range convolutionsOf[float32](t, job{engine: e}, seed, a, x, filters) {
				Run(c)
				name := fmt.Sprint(seed, c.Kind)
				if first, ok := want[name]; ok && !sameBits(first, c.Out[0]) {
					t.Fatalf("seed %d: %s has other bits on %d threads", seed, c.Kind, threads)
				}
				want[name] = c.Out[0]
			}
		}
	}
}

// Gradients of several chunks have the bits of the first variant in the layouts that devices offer, and each of these
// takes less scratch.
func TestVariantsOfChunks(t *testing.T) {
	j := job{engine: engine(t, 1)}
	three := window([2]int{3, 3}, [2]int{1, 1}, [2]int{1, 1})
	for _, c := range []struct {
		a       graph.Attrs
		x       graph.Shape
		filters int
		want    int // variants
	}{
		{three, graph.Shape{2, 64, 20, 50}, 40, 3},
		{window([2]int{7, 7}, [2]int{2, 2}, [2]int{3, 3}), graph.Shape{1, 3, 224, 224}, 8, 2},
		{inGroups(three, 2), graph.Shape{1, 64, 40, 60}, 6, 3},
		{three, graph.Shape{1, 4, 10, 10}, 3, 1},
		{three, graph.Shape{9, 64, 7, 7}, 3, 3},
		{window([2]int{1, 1}, [2]int{1, 1}, [2]int{}), graph.Shape{1, 64, 40, 60}, 6, 1},
		{inGroups(three, 8), graph.Shape{1, 8, 40, 60}, 8, 1},
	} {
		checkVariants[float32](t, j, 1, c.a, c.x, c.filters)
		for kind, call := range convolutionsOf[float32](t, j, 1, c.a, c.x, c.filters) {
			all := Variants(call.Kind, call.Attrs, call.InShapes, call.OutShapes)
			if want := []int{1, 1, c.want}[kind]; len(all) != want {
				t.Errorf("%s of %v: %d variants, want %d: %v", call.Kind, c.x, len(all), want, all)
			}
		}
	}
}

func TestConvolutionScratch(t *testing.T) {
	one := window([2]int{1, 1}, [2]int{1, 1}, [2]int{0, 0})
	big := window([2]int{3, 3}, [2]int{1, 1}, [2]int{1, 1})
	for _, c := range []struct {
		a    graph.Attrs
		x, y graph.Shape
		want int // of the gradient of the input
	}{
		{one, graph.Shape{8, 64, 56, 56}, graph.Shape{8, 64, 56, 56}, 0},
		{big, graph.Shape{8, 64, 32, 32}, graph.Shape{8, 64, 32, 32}, 64 * 9 * 14 * 32},
		{big, graph.Shape{8, 2, 20, 20}, graph.Shape{8, 64, 20, 20}, 2 * 9 * 20 * 20},
		{big, graph.Shape{9, 2, 6, 5}, graph.Shape{9, 64, 6, 5}, 2 * 9 * 8 * 6 * 5}, // eight images
		{big, graph.Shape{1, 4096, 2, 64}, graph.Shape{1, 1, 2, 64}, 455 * 9 * 64},  // one row, some channels
	} {
		w := graph.Shape{c.y[1], c.x[1], c.a.Kernel[0], c.a.Kernel[1]}
		for kind, shapes := range map[graph.Kind][3]graph.Shape{
			graph.Conv2D: {c.x, w, c.y}, graph.Conv2DDW: {c.x, c.y, w}, graph.Conv2DDX: {c.y, w, c.x},
		} {
			want := 0
			if kind == graph.Conv2DDX {
				want = c.want
			}
			if got := Scratch(kind, c.a, shapes[:2], shapes[2:]); got != want {
				t.Errorf("Scratch(%s, %v) = %d, want %d", kind, shapes, got, want)
			}
		}
	}
	if got := Scratch(graph.ReLU, graph.Attrs{}, []graph.Shape{{3}}, []graph.Shape{{3}}); got != 0 {
		t.Errorf("Scratch(relu) = %d, want 0", got)
	}
}

func FuzzConvolution(f *testing.F) {
	f.Add(uint64(1), uint8(2), uint8(3), uint8(7), uint8(8), uint8(2), uint16(0x1133), uint8(0x12))
	f.Add(uint64(2), uint8(1), uint8(1), uint8(1), uint8(9), uint8(40), uint16(0x2151), uint8(0x20))
	f.Fuzz(func(t *testing.T, seed uint64, n, c, h, w, k uint8, slide uint16, pad uint8) {
		a := window([2]int{int(slide&7) + 1, int(slide>>4&7) + 1}, [2]int{int(slide>>8&3) + 1, int(slide>>12&3) + 1},
			[2]int{})
		a.Pad = [2]int{int(pad&15) % a.Kernel[0], int(pad>>4) % a.Kernel[1]}
		x := graph.Shape{int(n)%3 + 1, int(c)%5 + 1, int(h)%12 + 1, int(w)%12 + 1}
		filters := int(k)%40 + 1
		if _, err := graph.Infer(graph.Conv2D, a,
			[]graph.Shape{x, {filters, x[1], a.Kernel[0], a.Kernel[1]}}); err != nil {
			t.Skip(err)
		}
		checkConv[float64](t, engine(t, 1), seed, a, x[0], x[1], x[2], x[3], filters, 1e-13)
		checkConv[float32](t, engine(t, 1), seed, a, x[0], x[1], x[2], x[3], filters, 1e-5)
	})
}
