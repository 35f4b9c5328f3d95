package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"tensile/graph"
)

type tensor64 = tensor[float64]

// checkGradient compares a gradient with central differences of loss, which reads x. It is the only finite-difference
// code here: everything else says which forward kinds make the loss and which backward kinds the gradient.
func checkGradient(t *testing.T, what string, gradient, x tensor64, loss func() float64) {
	t.Helper()
	const step = 1e-5
	want := make([]float64, len(x.data))
	for i, v := range x.data {
		x.data[i] = v + step
		above := loss()
		x.data[i] = v - step
		below := loss()
		x.data[i] = v
		want[i] = (above - below) / (2 * step)
	}
	near(t, what, gradient.data, want, 1e-6)
}

func dot(a, b tensor64) (sum float64) {
	for i, v := range a.data {
		sum += v * b.data[i]
	}
	return sum
}

func TestConvolutionGradients(t *testing.T) {
	j := job{engine: engine(t, 1)}
	check := func(t *testing.T, seed, n, c, h, wide, k int, a graph.Attrs) {
		rng := randoms(uint64(seed))
		x, b := normal[float64](rng, n, c, h, wide), normal[float64](rng, k)
		w := normal[float64](rng, k, c/max(1, a.Groups), a.Kernel[0], a.Kernel[1])
		dy := normal[float64](rng, apply(t, j, graph.Conv2D, a, x, w, b)[0].shape...)
		loss := func() float64 { return dot(apply(t, j, graph.Conv2D, a, x, w, b)[0], dy) }
		extent := a
		extent.Extent = [2]int{h, wide}
		checkGradient(t, "dx", apply(t, j, graph.Conv2DDX, extent, dy, w)[0], x, loss)
		checkGradient(t, "dw", apply(t, j, graph.Conv2DDW, a, x, dy)[0], w, loss)
		checkGradient(t, "db", apply(t, j, graph.BiasDB, graph.Attrs{}, dy)[0], b, loss)
	}
	forEachGeometry(t, func(t *testing.T, i int) {
		g := geometries[i]
		check(t, i, g.n, g.c, g.h, g.w, g.k, g.attrs)
		check(t, i, g.n, 2*g.c, g.h, g.w, 2*g.k, inGroups(g.attrs, 2))
		check(t, i, g.n, 3, g.h, g.w, 3*g.k, inGroups(g.attrs, 3)) // depthwise
	})
}

func TestLinearGradients(t *testing.T) {
	j := job{engine: engine(t, 1)}
	rng := randoms(1)
	x, w, b := normal[float64](rng, 5, 7), normal[float64](rng, 6, 7), normal[float64](rng, 6)
	dy := normal[float64](rng, 5, 6)
	loss := func() float64 { return dot(apply(t, j, graph.Linear, graph.Attrs{}, x, w, b)[0], dy) }
	checkGradient(t, "dx", apply(t, j, graph.LinearDX, graph.Attrs{}, dy, w)[0], x, loss)
	checkGradient(t, "dw", apply(t, j, graph.LinearDW, graph.Attrs{}, x, dy)[0], w, loss)
	checkGradient(t, "db", apply(t, j, graph.BiasDB, graph.Attrs{}, dy)[0], b, loss)
}

func TestPoolGradients(t *testing.T) {
	for i, kind := range [][2]graph.Kind{{graph.MaxPool, graph.MaxPoolDX}, {graph.AvgPool, graph.AvgPoolDX},
		{graph.AvgPool, graph.AvgPoolDX}} {
		inside := i == 2
		t.Run(fmt.Sprintf("%s,inside=%v", kind[0], inside), func(t *testing.T) {
			forEachGeometry(t, func(t *testing.T, i int) {
				g, rng := geometries[i], randoms(uint64(i))
				g.attrs.Inside = inside
				x := distinct(rng, g.n, g.c, g.h, g.w)
				y := apply(t, job{}, kind[0], g.attrs, x)[0]
				dy := normal[float64](rng, y.shape...)
				checkGradient(t, "dx", apply(t, job{}, kind[1], g.attrs, x, y, dy)[0], x, func() float64 {
					return dot(apply(t, job{}, kind[0], g.attrs, x)[0], dy)
				})
			})
		})
	}
}

// distinct returns elements at least 0.1 apart from one another and from zero, so that a small step changes no maximum
// and no sign.
func distinct(rng *rand.Rand, shape ...int) tensor64 {
	x := normal[float64](rng, shape...)
	for i, rank := range rng.Perm(len(x.data)) {
		x.data[i] = float64(rank-len(x.data)/2)/10 + 0.05
	}
	return x
}

func TestReLUGradient(t *testing.T) {
	rng := randoms(2)
	x, dy := distinct(rng, 4, 5), normal[float64](rng, 4, 5)
	y := apply(t, job{}, graph.ReLU, graph.Attrs{}, x)[0]
	checkGradient(t, "dx", apply(t, job{}, graph.ReLUDX, graph.Attrs{}, x, y, dy)[0], x, func() float64 {
		return dot(apply(t, job{}, graph.ReLU, graph.Attrs{}, x)[0], dy)
	})
}

// The gradient of batch norm goes through its statistics.
func TestBatchNormGradient(t *testing.T) {
	attrs := graph.Attrs{Epsilon: 1e-3}
	for _, shape := range []graph.Shape{{3, 2, 4, 3}, {4, 3, 1, 1}, {1, 1, 3, 5}} {
		rng := randoms(3)
		x, gamma, beta := normal[float64](rng, shape...), normal[float64](rng, shape[1]), normal[float64](rng, shape[1])
		dy := normal[float64](rng, shape...)
		loss := func() float64 {
			stats := apply(t, job{}, graph.BatchNormStats, graph.Attrs{}, x)
			return dot(apply(t, job{}, graph.BatchNorm, attrs, x, stats[0], stats[1], gamma, beta)[0], dy)
		}
		stats := apply(t, job{}, graph.BatchNormStats, graph.Attrs{}, x)
		got := apply(t, job{}, graph.BatchNormGrad, attrs, x, stats[0], stats[1], gamma, dy)
		checkGradient(t, "dx", got[0], x, loss)
		checkGradient(t, "dgamma", got[1], gamma, loss)
		checkGradient(t, "dbeta", got[2], beta, loss)
	}
}

func TestDropoutGradient(t *testing.T) {
	rng, j, attrs := randoms(4), job{seed: 5, iteration: 6}, graph.Attrs{Rate: 0.3, Key: 9}
	x, dy := normal[float64](rng, 6, 5), normal[float64](rng, 6, 5)
	checkGradient(t, "dx", apply(t, j, graph.DropoutDX, attrs, dy)[0], x, func() float64 {
		return dot(apply(t, j, graph.Dropout, attrs, x)[0], dy)
	})
}

func TestSoftmaxXentGradient(t *testing.T) {
	rng := randoms(5)
	logits, classes := normal[float64](rng, 6, 5), labels[float64](rng, 6, 5)
	p := apply(t, job{}, graph.SoftmaxXent, graph.Attrs{}, logits, classes)[1]
	checkGradient(t, "dlogits", apply(t, job{}, graph.SoftmaxXentDX, graph.Attrs{}, p, classes)[0], logits,
		func() float64 {
			loss := apply(t, job{}, graph.SoftmaxXent, graph.Attrs{}, logits, classes)[0].data[0]
			if math.IsNaN(loss) {
				t.Fatal("the loss is NaN")
			}
			return loss
		})
}
