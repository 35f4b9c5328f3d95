package kernel

import (
	"math"
	"slices"
	"testing"

	"tensile/device/cpu/gemm"
	"tensile/graph"
)

// slowPool is the oracle: every window as a list.
func slowPool[T gemm.Float](a graph.Attrs, x tensor[T], out graph.Shape, of func(window []float64) float64) []float64 {
	var y []float64
	for plane := range out[0] * out[1] {
		for p := range out[2] {
			for q := range out[3] {
				var window []float64
				for r := range a.Kernel[0] {
					for s := range a.Kernel[1] {
						h, w := p*a.Stride[0]-a.Pad[0]+r, q*a.Stride[1]-a.Pad[1]+s
						if h >= 0 && w >= 0 && h < x.shape[2] && w < x.shape[3] {
							window = append(window, float64(x.data[(plane*x.shape[2]+h)*x.shape[3]+w]))
						}
					}
				}
				y = append(y, of(window))
			}
		}
	}
	return y
}

func testPools[T gemm.Float](t *testing.T, tolerance float64) {
	forEachGeometry(t, func(t *testing.T, i int) {
		g := geometries[i]
		x := normal[T](randoms(uint64(i)), g.n, g.c, g.h, g.w)
		y := apply(t, job{}, graph.MaxPool, g.attrs, x)[0]
		near(t, "max", y.data, slowPool(g.attrs, x, y.shape, slices.Max), 0)
		y = apply(t, job{}, graph.AvgPool, g.attrs, x)[0]
		near(t, "avg", y.data, slowPool(g.attrs, x, y.shape, func(window []float64) (sum float64) {
			for _, v := range window {
				sum += v
			}
			return sum / float64(g.attrs.Kernel[0]*g.attrs.Kernel[1])
		}), tolerance)
		inside := g.attrs
		inside.Inside = true
		y = apply(t, job{}, graph.AvgPool, inside, x)[0]
		near(t, "avg inside", y.data, slowPool(g.attrs, x, y.shape, func(window []float64) (sum float64) {
			for _, v := range window {
				sum += v
			}
			return sum / float64(len(window))
		}), tolerance)
	})
}

func TestPoolsAgainstSlow(t *testing.T) {
	t.Run("float32", func(t *testing.T) { testPools[float32](t, 1e-6) })
	t.Run("float64", func(t *testing.T) { testPools[float64](t, 1e-15) })
}

// Of equal maxima the first takes the gradient, and padding never wins over negative elements.
func TestMaxPoolTies(t *testing.T) {
	a := window([2]int{2, 2}, [2]int{1, 1}, [2]int{1, 1})
	x := tensor[float32]{graph.Shape{1, 1, 2, 2}, []float32{-1, -1, -1, -2}}
	y := apply(t, job{}, graph.MaxPool, a, x)[0]
	if want := []float32{-1, -1, -1, -1, -1, -1, -1, -1, -2}; !slices.Equal(y.data, want) {
		t.Errorf("y = %v, want %v", y.data, want)
	}
	dy := tensor[float32]{y.shape, []float32{1, 2, 4, 8, 16, 32, 64, 128, 256}}
	got := apply(t, job{}, graph.MaxPoolDX, a, x, y, dy)[0].data
	if want := []float32{1 + 2 + 8 + 16, 4 + 32, 64 + 128, 256}; !slices.Equal(got, want) {
		t.Errorf("dx = %v, want %v", got, want)
	}
}

// The gradient by indices has the bits of the one that looks for the maximum again, where elements are equal, zeros
// have either sign, or one is NaN, too. The forward op has the bits of max_pool.
func testPoolIndices[T gemm.Float](t *testing.T) {
	ties := []T{-1, T(math.Copysign(0, -1)), 0, 1, 1, T(math.Inf(-1)), T(math.NaN())}
	forEachGeometry(t, func(t *testing.T, i int) {
		g, rng := geometries[i], randoms(uint64(i))
		for _, kinds := range []int{0, 3, 5, 7} { // 0: all differ
			x := normal[T](rng, g.n, g.c, g.h, g.w)
			for k := range x.data {
				if kinds > 0 {
					x.data[k] = ties[rng.IntN(kinds)]
				}
			}
			y := apply(t, job{}, graph.MaxPool, g.attrs, x)[0]
			dy := normal[T](rng, y.shape...)
			dx := apply(t, job{}, graph.MaxPoolDX, g.attrs, x, y, dy)[0]
			both := apply(t, job{}, graph.MaxPoolIndices, g.attrs, x)
			if !sameBits(both[0].data, y.data) {
				t.Fatalf("%d kinds: y = %v, want %v", kinds, both[0].data, y.data)
			}
			got := apply(t, job{}, graph.MaxPoolIndicesDX, onto(g.attrs, g.h, g.w), both[1], dy)[0]
			if !sameBits(got.data, dx.data) {
				t.Fatalf("%d kinds: dx = %v, want %v", kinds, got.data, dx.data)
			}
		}
	})
}

// The gradient of an average that is told the extent of x has the bits of the one that is given x and y.
func TestAvgPoolGradientOfExtent(t *testing.T) {
	forEachGeometry(t, func(t *testing.T, i int) {
		g, rng := geometries[i], randoms(uint64(i))
		for _, inside := range []bool{false, true} {
			a := g.attrs
			a.Inside = inside
			x := normal[float32](rng, g.n, g.c, g.h, g.w)
			y := apply(t, job{}, graph.AvgPool, a, x)[0]
			dy := normal[float32](rng, y.shape...)
			want := apply(t, job{}, graph.AvgPoolDX, a, x, y, dy)[0].data
			if got := apply(t, job{}, graph.AvgPoolDYDX, onto(a, g.h, g.w), dy)[0].data; !sameBits(got, want) {
				t.Fatalf("inside %v: dx = %v, want %v", inside, got, want)
			}
		}
	})
}

func TestPoolIndices(t *testing.T) {
	t.Run("float32", testPoolIndices[float32])
	t.Run("float64", testPoolIndices[float64])
}

func testLinear[T gemm.Float](t *testing.T, tolerance float64) {
	rng, j := randoms(1), job{engine: engine(t, 1)}
	x, w, b := normal[T](rng, 5, 70), normal[T](rng, 6, 70), normal[T](rng, 6)
	want := make([]float64, 0, 30)
	for n := range 5 {
		for o := range 6 {
			sum := float64(b.data[o])
			for i := range 70 {
				sum += float64(x.data[n*70+i]) * float64(w.data[o*70+i])
			}
			want = append(want, sum)
		}
	}
	near(t, "y with bias", apply(t, j, graph.Linear, graph.Attrs{}, x, w, b)[0].data, want, tolerance)
	for i := range want {
		want[i] -= float64(b.data[i%6])
	}
	near(t, "y", apply(t, j, graph.Linear, graph.Attrs{}, x, w)[0].data, want, tolerance)
}

func TestLinearAgainstSlow(t *testing.T) {
	t.Run("float32", func(t *testing.T) { testLinear[float32](t, 1e-5) })
	t.Run("float64", func(t *testing.T) { testLinear[float64](t, 1e-13) })
}

// The elements of each channel have mean 0 and variance 1 before gamma and beta.
func testBatchNorm[T gemm.Float](t *testing.T, tolerance float64) {
	rng := randoms(3)
	const n, c, size = 3, 4, 5 * 7
	x, gamma, beta := normal[T](rng, n, c, 5, 7), normal[T](rng, c), normal[T](rng, c)
	var mean, variance [c]float64
	each := func(visit func(i, k int)) {
		for i := range x.data {
			visit(i, i/size%c)
		}
	}
	each(func(i, k int) { x.data[i] += T(10 * k); mean[k] += float64(x.data[i]) / (n * size) })
	each(func(i, k int) { variance[k] += math.Pow(float64(x.data[i])-mean[k], 2) / (n * size) })
	stats := apply(t, job{}, graph.BatchNormStats, graph.Attrs{}, x)
	near(t, "mean", stats[0].data, mean[:], tolerance)
	near(t, "variance", stats[1].data, variance[:], tolerance)

	want := make([]float64, len(x.data))
	each(func(i, k int) {
		want[i] = (float64(x.data[i])-mean[k])/math.Sqrt(variance[k]+1e-5)*float64(gamma.data[k]) +
			float64(beta.data[k])
	})
	y := apply(t, job{}, graph.BatchNorm, graph.Attrs{Epsilon: 1e-5}, x, stats[0], stats[1], gamma, beta)[0]
	near(t, "y", y.data, want, 10*tolerance)
}

func TestBatchNormAgainstSlow(t *testing.T) {
	t.Run("float32", func(t *testing.T) { testBatchNorm[float32](t, 1e-6) })
	t.Run("float64", func(t *testing.T) { testBatchNorm[float64](t, 1e-14) })
}

func TestBatchNormUpdate(t *testing.T) {
	one := func(v float64) tensor64 { return tensor64{graph.Shape{1}, []float64{v}} }
	got := apply(t, job{}, graph.BatchNormUpdate, graph.Attrs{Momentum: 0.25, Length: 5}, one(8), one(4), one(0),
		one(1))
	near(t, "running mean", got[0].data, []float64{2}, 1e-15)
	near(t, "running variance", got[1].data, []float64{0.75 + 0.25*4*5/4}, 1e-15)
}

// A bias gradient sums over the batch and over all positions.
func TestBiasDBAgainstSlow(t *testing.T) {
	for _, shape := range []graph.Shape{{4, 3}, {2, 3, 5}, {3, 2, 5, 7}} {
		dy := normal[float32](randoms(4), shape...)
		want := make([]float64, shape[1])
		for i, v := range dy.data {
			want[i/(len(dy.data)/shape[0]/shape[1])%shape[1]] += float64(v)
		}
		near(t, "db", apply(t, job{}, graph.BiasDB, graph.Attrs{}, dy)[0].data, want, 1e-6)
	}
}

func TestPointwise(t *testing.T) {
	vector := func(v ...float32) tensor[float32] { return tensor[float32]{graph.Shape{len(v)}, v} }
	nan := float32(math.NaN())
	for _, c := range []struct {
		kind     graph.Kind
		in       []tensor[float32]
		expected []float32
	}{
		{graph.ReLU, []tensor[float32]{vector(-1, 0, 3, nan, float32(math.Inf(-1)))}, []float32{0, 0, 3, nan, 0}},
		{graph.ReLUDX, []tensor[float32]{vector(-1, 0, 3), vector(0, 0, 3), vector(nan, 5, -1e-40)},
			[]float32{0, 0, -1e-40}},
		{graph.ReLUYDX, []tensor[float32]{vector(0, 0, 3, nan), vector(nan, 5, -1e-40, 7)},
			[]float32{0, 0, -1e-40, 0}},
		{graph.Add, []tensor[float32]{vector(1, 2, 3), vector(10, 20, 30)}, []float32{11, 22, 33}},
		{graph.Mul, []tensor[float32]{vector(1, 2, 3), vector(10, 20, 30)}, []float32{10, 40, 90}},
		{graph.Accumulate, []tensor[float32]{vector(1, 2, 3), vector(10, 20, 30)}, []float32{11, 22, 33}},
		{graph.Scale, []tensor[float32]{vector(1, 2, 3)}, []float32{0.5, 1, 1.5}},
		{graph.Affine, []tensor[float32]{vector(1, 2, 3)}, []float32{0.75, 1.25, 1.75}},
		{graph.Power, []tensor[float32]{vector(1, 2, -3)}, []float32{1, 4, 9}},
		{graph.Exp, []tensor[float32]{vector(0, 1, float32(math.Inf(-1)))}, []float32{1, math.E, 0}},
		{graph.Log, []tensor[float32]{vector(1, 2, 0)}, []float32{0, math.Ln2, float32(math.Inf(-1))}},
		{graph.Erf, []tensor[float32]{vector(0, 10, -10)}, []float32{0, 1, -1}},
	} {
		var attrs graph.Attrs
		switch c.kind {
		case graph.Scale:
			attrs.Factor = 0.5
		case graph.Affine:
			attrs.Factor, attrs.Shift = 0.5, 0.25
		case graph.Power:
			attrs.Exponent = 2
		}
		got := apply(t, job{}, c.kind, attrs, c.in...)[0].data
		if !sameBits(got, c.expected) {
			t.Errorf("%s = %v, want %v", c.kind, got, c.expected)
		}
	}
}

// expand and sum_over against what they mean, element by element.
func TestBroadcastAgainstSlow(t *testing.T) {
	for seed, s := range []graph.Shape{{1, 1, 1}, {2, 3, 1}, {1, 5, 70}, {3, 4, 130}} {
		rng := randoms(uint64(seed))
		x, row := normal[float32](rng, s...), normal[float32](rng, s[0], s[2])
		sums, rows := make([]float64, s[0]*s[2]), make([]float32, s.Elements())
		for i, v := range x.data {
			at := i/(s[1]*s[2])*s[2] + i%s[2]
			sums[at] += float64(v)
			rows[i] = row.data[at]
		}
		near(t, "sum_over", apply(t, job{}, graph.SumOver, graph.Attrs{}, x)[0].data, sums, 1e-6)
		if got := apply(t, job{}, graph.Expand, graph.Attrs{Extent: [2]int{s[1]}}, row)[0].data; !sameBits(got, rows) {
			t.Errorf("expand to %v is wrong", s)
		}
	}
}

func testSoftmaxXent[T gemm.Float](t *testing.T, tolerance float64) {
	const n, classes = 4, 3
	logits := normal[T](randoms(6), n, classes)
	logits.data[0] += 3e4 // would overflow if taken as it is
	logits.data[4] -= 3e4
	targets := []T{0, 2, 1, 0}
	loss, want := 0.0, make([]float64, n*classes)
	for r := range n {
		sum := 0.0
		for k := range classes { // relative to the label's logit
			sum += math.Exp(float64(logits.data[r*classes+k]) - float64(logits.data[r*classes+int(targets[r])]))
		}
		for k := range classes {
			want[r*classes+k] = math.Exp(float64(logits.data[r*classes+k])-float64(logits.data[r*classes+
				int(targets[r])])) / sum
		}
		loss += math.Log(sum) / n
	}
	got := apply(t, job{}, graph.SoftmaxXent, graph.Attrs{}, logits, tensor[T]{graph.Shape{n}, targets})
	near(t, "loss", got[0].data, []float64{loss}, tolerance)
	near(t, "probabilities", got[1].data, want, tolerance)
}

func TestSoftmaxXentAgainstSlow(t *testing.T) {
	t.Run("float32", func(t *testing.T) { testSoftmaxXent[float32](t, 1e-6) })
	t.Run("float64", func(t *testing.T) { testSoftmaxXent[float64](t, 1e-14) })
}
