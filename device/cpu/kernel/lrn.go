package kernel

import (
	"math"

	"tensile/device/cpu/gemm"
	"tensile/graph"
)

// normalisation is the geometry of the lrn kinds: images of c channels, each of size pixels, and around each channel a
// window of channels that reaches half of them each way.
type normalisation struct {
	channels
	half                      int
	factor, epsilon, exponent float64
}

func normalisationOf(a graph.Attrs, x graph.Shape) normalisation {
	return normalisation{channelsOf(x), a.Length / 2, a.Factor, a.Epsilon, a.Exponent}
}

// window returns the channels [from, to) around channel k.
func (l *normalisation) window(k int) (from, to int) {
	return max(0, k-l.half), min(l.c, k+l.half+1)
}

// power is s^-Exponent. For three quarters, which every known network has, two roots do.
func (l *normalisation) power(s float64) float64 {
	if l.exponent == 0.75 {
		root := math.Sqrt(s)
		return 1 / (root * math.Sqrt(root))
	}
	return math.Pow(s, -l.exponent)
}

// scales writes Epsilon + Factor·Σx² of channel k of image n.
func scales[T gemm.Float](l *normalisation, to, x []T, n, k int) {
	fill(to, T(l.epsilon))
	factor := T(l.factor)
	from, end := l.window(k)
	for j := from; j < end; j++ {
		row := plane(l.channels, x, n, j)[:len(to)]
		for i, v := range row {
			to[i] += factor * v * v
		}
	}
}

// lrn: x -> y = x·s^-Exponent with s = Epsilon + Factor·Σx², the sum over the window of channels.
func lrn[T gemm.Float](c *Call[T]) {
	l := normalisationOf(c.Attrs, c.InShapes[0])
	for n := range l.n {
		for k := range l.c {
			x, y := plane(l.channels, c.In[0], n, k), plane(l.channels, c.Out[0], n, k)
			scales(&l, y, c.In[0], n, k)
			x = x[:len(y)]
			for i, s := range y {
				y[i] = x[i] * T(l.power(float64(s)))
			}
		}
	}
}

func lrnDXScratch(_ string, _ graph.Attrs, in, _ []graph.Shape) int {
	return in[0][1] * in[0][2] * in[0][3]
}

// lrnDX: x y dy -> dx. With s as above, dx = dy·s^-Exponent - 2·Factor·Exponent·x·Σ dy·y/s over the window. The terms
// of the sum stand in scratch, an image at a time.
func lrnDX[T gemm.Float](c *Call[T]) {
	l := normalisationOf(c.Attrs, c.InShapes[0])
	slope := T(2 * l.factor * l.exponent)
	for n := range l.n {
		for k := range l.c {
			y, dy := plane(l.channels, c.In[1], n, k), plane(l.channels, c.In[2], n, k)
			s, term := plane(l.channels, c.Out[0], n, k), plane(l.channels, c.Scratch, 0, k)
			scales(&l, s, c.In[0], n, k)
			y, dy, term = y[:len(s)], dy[:len(s)], term[:len(s)]
			for i, v := range s {
				term[i] = dy[i] * y[i] / v
			}
		}
		for k := range l.c {
			x, dy, dx := plane(l.channels, c.In[0], n, k), plane(l.channels, c.In[2], n, k), plane(l.channels, c.Out[0],
				n, k)
			x, dy = x[:len(dx)], dy[:len(dx)]
			for i, s := range dx {
				dx[i] = dy[i] * T(l.power(float64(s)))
			}
			from, to := l.window(k)
			for j := from; j < to; j++ {
				term := plane(l.channels, c.Scratch, 0, j)[:len(dx)]
				for i, v := range term {
					dx[i] -= slope * x[i] * v
				}
			}
		}
	}
}
