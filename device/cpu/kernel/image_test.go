package kernel

import (
	"math"
	"testing"

	"tensile/device/cpu/gemm"
	"tensile/graph"
)

var lrns = []graph.Attrs{
	{Length: 1, Factor: 0.3, Exponent: 1, Epsilon: 2},
	{Length: 5, Factor: 0.1, Exponent: 0.75, Epsilon: 1},
	{Length: 11, Factor: 0.2, Exponent: 0.5, Epsilon: 0.5},
}

func testLRN[T gemm.Float](t *testing.T, tolerance float64) {
	for _, a := range lrns {
		const n, c, size = 2, 7, 6
		x := normal[T](randoms(2), n, c, 2, 3)
		at := func(i, k, p int) float64 { return float64(x.data[(i*c+k)*size+p]) }
		var want []float64
		for i := range n {
			for k := range c {
				for p := range size {
					s := a.Epsilon
					for j := k - a.Length/2; j <= k+a.Length/2; j++ {
						if j >= 0 && j < c {
							s += a.Factor * at(i, j, p) * at(i, j, p)
						}
					}
					want = append(want, at(i, k, p)*math.Pow(s, -a.Exponent))
				}
			}
		}
		near(t, "y", apply(t, job{}, graph.LRN, a, x)[0].data, want, tolerance)
	}
}

func TestLRNAgainstSlow(t *testing.T) {
	t.Run("float32", func(t *testing.T) { testLRN[float32](t, 1e-6) })
	t.Run("float64", func(t *testing.T) { testLRN[float64](t, 1e-14) })
}

func TestLRNGradient(t *testing.T) {
	for _, a := range lrns {
		rng := randoms(3)
		x, dy := normal[float64](rng, 2, 7, 2, 3), normal[float64](rng, 2, 7, 2, 3)
		y := apply(t, job{}, graph.LRN, a, x)[0]
		checkGradient(t, "dx", apply(t, job{}, graph.LRNDX, a, x, y, dy)[0], x, func() float64 {
			return dot(apply(t, job{}, graph.LRN, a, x)[0], dy)
		})
	}
}

// A pad moves pixels; back again, what was not cropped is there and the rest is zero.
func TestPad(t *testing.T) {
	x := counting(1, 2, 3, 4, 5)
	for _, a := range []graph.Attrs{
		{Extent: [2]int{4, 5}}, {Pad: [2]int{1, 2}, Extent: [2]int{6, 9}}, {Pad: [2]int{-1, -1}, Extent: [2]int{3, 4}},
		{Pad: [2]int{-3, 4}, Extent: [2]int{2, 5}}, {Pad: [2]int{2, -1}, Extent: [2]int{3, 9}},
	} {
		y := apply(t, job{}, graph.Pad, a, x)[0]
		each(y.shape, func(i []int) {
			h, w := i[2]-a.Pad[0], i[3]-a.Pad[1]
			want := float32(0)
			if h >= 0 && w >= 0 && h < 4 && w < 5 {
				want = at(x, []int{i[0], i[1], h, w})
			}
			if got := at(y, i); got != want {
				t.Errorf("%v to %v: y%v = %v, want %v", a.Pad, a.Extent, i, got, want)
			}
		})
	}
}
