package kernel

import (
	"math"
	"testing"

	"tensile/device/cpu/gemm"
	"tensile/graph"
)

// slowOptimizer is one scalar step in float64, as the papers write it; state is m and v.
type slowOptimizer func(a graph.Attrs, step int, w, g float64, state *[2]float64) float64

var optimizers = map[graph.Kind]slowOptimizer{
	graph.SGD: func(a graph.Attrs, _ int, w, g float64, _ *[2]float64) float64 {
		return w - a.LearningRate*g
	},
	graph.Momentum: func(a graph.Attrs, _ int, w, g float64, s *[2]float64) float64 {
		s[0] = a.Momentum*s[0] + g
		return w - a.LearningRate*s[0]
	},
	graph.Adam: func(a graph.Attrs, step int, w, g float64, s *[2]float64) float64 {
		s[0] = a.Beta1*s[0] + (1-a.Beta1)*g
		s[1] = a.Beta2*s[1] + (1-a.Beta2)*g*g
		m := s[0] / (1 - math.Pow(a.Beta1, float64(step)))
		v := s[1] / (1 - math.Pow(a.Beta2, float64(step)))
		return w - a.LearningRate*m/(math.Sqrt(v)+a.Epsilon)
	},
}

// Twenty steps from moments of zero stay with the scalar reference.
func testOptimizers[T gemm.Float](t *testing.T, tolerance float64) {
	for kind, attrs := range map[graph.Kind]graph.Attrs{
		graph.SGD:      {LearningRate: 0.05},
		graph.Momentum: {LearningRate: 0.05, Momentum: 0.9},
		graph.Adam:     {LearningRate: 0.05, Beta1: 0.8, Beta2: 0.95, Epsilon: 1e-3},
	} {
		t.Run(string(kind), func(t *testing.T) {
			slow := optimizers[kind]
			const n, steps = 33, 20
			rng := randoms(7)
			in := []tensor[T]{normal[T](rng, n), {}}
			for range len(inPlace[kind]) - 1 {
				in = append(in, tensor[T]{graph.Shape{n}, make([]T, n)})
			}
			want, states := make([]float64, n), make([][2]float64, n)
			for i, w := range in[0].data {
				want[i] = float64(w)
			}
			for step := range steps {
				in[1] = normal[T](rng, n)
				for i, g := range in[1].data {
					want[i] = slow(attrs, step+1, want[i], float64(g), &states[i])
				}
				for i, out := range apply(t, job{iteration: step}, kind, attrs, in...) {
					in[inPlace[kind][i]] = out
				}
			}
			near(t, "w", in[0].data, want, tolerance)
		})
	}
}

func TestOptimizersAgainstSlow(t *testing.T) {
	t.Run("float32", func(t *testing.T) { testOptimizers[float32](t, 1e-5) })
	t.Run("float64", func(t *testing.T) { testOptimizers[float64](t, 1e-13) })
}
