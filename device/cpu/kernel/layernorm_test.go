package kernel

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"tensile/device/cpu/crew"
	"tensile/device/cpu/gemm"
	"tensile/graph"
)

// Layer norms have the same bits for any number of threads, with outputs left out, and with dx in the memory of dy.
func TestLayerNormBits(t *testing.T) {
	rng := randoms(7)
	for _, width := range []int{1, 7, 8, 15, 16, 17, 1023, 1024, 1025, 2048, 2600} {
		for _, n := range []int{1, 2, 3, 40} {
			x, gamma, beta := normal[float32](rng, n, width), normal[float32](rng, width), normal[float32](rng, width)
			dy := normal[float32](rng, n, width)
			y := apply(t, job{}, graph.LayerNorm, graph.Attrs{Epsilon: 1e-5}, x, gamma, beta)
			want := apply(t, job{}, graph.LayerNormGrad, graph.Attrs{}, x, y[1], y[2], gamma, dy)
			same := func(what string, a, b []tensor[float32]) {
				for i := range a {
					if a[i].data != nil && b[i].data != nil && !slices.Equal(a[i].data, b[i].data) {
						t.Errorf("width %d, %d rows, %s: output %d has other bits", width, n, what, i)
					}
				}
			}
			for threads := 1; threads <= 3; threads++ {
				c := crew.New(threads)
				j := job{engine: gemm.New(c)}
				same(fmt.Sprint(threads), apply(t, j, graph.LayerNorm, graph.Attrs{Epsilon: 1e-5}, x, gamma, beta), y)
				for _, out := range [][]int{nil, {0}, {1}, {2}, {1, 2}, {0, 1}} {
					j.unwanted = out
					got := apply(t, j, graph.LayerNormGrad, graph.Attrs{}, x, y[1], y[2], gamma, dy)
					same(fmt.Sprint(threads, " threads without ", out), got, want)
				}
				j.unwanted = nil
				own := tensor[float32]{dy.shape, slices.Clone(dy.data)}
				k := call(t, j, graph.LayerNormGrad, graph.Attrs{}, x, y[1], y[2], gamma, own)
				k.Out[0] = k.In[4]
				Run(k)
				for i, out := range want {
					same("in place", []tensor[float32]{{out.shape, k.Out[i]}}, want[i:i+1])
				}
				c.Close()
			}
		}
	}
}

// Rows with a mean far larger than their deviation are normalised as exactly as floats allow.
func TestLayerNormLargeMean(t *testing.T) {
	rng := randoms(8)
	const width = 1500
	gamma, beta := positive[float32](rng, width), normal[float32](rng, width)
	for _, mean := range []float32{0, 30, 1e3, 1e4, 1e6} {
		x := normal[float32](rng, 1, width)
		var centre, variance float64
		for i := range x.data {
			x.data[i] += mean
			centre += float64(x.data[i]) / width
		}
		for _, v := range x.data {
			variance += (float64(v) - centre) * (float64(v) - centre) / width
		}
		y := apply(t, job{}, graph.LayerNorm, graph.Attrs{Epsilon: 1e-5}, x, gamma, beta)[0].data
		worst := 0.0
		for i, v := range x.data {
			want := (float64(v)-centre)/math.Sqrt(variance+1e-5)*float64(gamma.data[i]) + float64(beta.data[i])
			worst = max(worst, math.Abs(float64(y[i])-want))
		}
		if worst > 2e-6 {
			t.Errorf("mean %v: y is %.2g off", mean, worst)
		}
	}
}
