package kernel

import (
	"fmt"
	"testing"

	"tensile/graph"
)

// gradients checks the gradients that a backward kind makes in some of a forward kind's inputs. The loss is the
// outputs' product with dys, one per output that has a gradient.
func gradients(t *testing.T, forward graph.Kind, attrs graph.Attrs, in, dys []tensor64, got map[int]tensor64) {
	t.Helper()
	j := job{engine: engine(t, 1)}
	for i, gradient := range got {
		checkGradient(t, fmt.Sprintf("%s: gradient of input %d", forward, i), gradient, in[i], func() (sum float64) {
			for o, y := range apply(t, j, forward, attrs, in...)[:len(dys)] {
				sum += dot(y, dys[o])
			}
			return sum
		})
	}
}

func TestEmbeddingGradients(t *testing.T) {
	rng := randoms(1)
	table, ids, dy := normal[float64](rng, 5, 3), randomIndices[float64](rng, 8, 5), normal[float64](rng, 8, 3)
	dtable := apply(t, job{}, graph.EmbeddingDW, graph.Attrs{Extent: [2]int{5}}, ids, dy)[0]
	gradients(t, graph.Embedding, graph.Attrs{}, []tensor64{table, ids}, []tensor64{dy}, map[int]tensor64{0: dtable})
}

func TestBiasGradients(t *testing.T) {
	rng := randoms(2)
	x, b, dy := normal[float64](rng, 4, 3), normal[float64](rng, 3), normal[float64](rng, 4, 3)
	db := apply(t, job{}, graph.BiasDB, graph.Attrs{}, dy)[0]
	gradients(t, graph.Bias, graph.Attrs{}, []tensor64{x, b}, []tensor64{dy}, map[int]tensor64{0: dy, 1: db})
}

func TestLayerNormGradients(t *testing.T) {
	rng, attrs := randoms(3), graph.Attrs{Epsilon: 1e-3}
	for _, shape := range []graph.Shape{{3, 5}, {1, 4}, {4, 1}} {
		x, gamma, beta := normal[float64](rng, shape...), normal[float64](rng, shape[1]), normal[float64](rng, shape[1])
		dy := normal[float64](rng, shape...)
		y := apply(t, job{}, graph.LayerNorm, attrs, x, gamma, beta)
		got := apply(t, job{}, graph.LayerNormGrad, graph.Attrs{}, x, y[1], y[2], gamma, dy)
		gradients(t, graph.LayerNorm, attrs, []tensor64{x, gamma, beta}, []tensor64{dy}, map[int]tensor64{0: got[0],
			1: got[1], 2: got[2]})
	}
}

func TestActivationGradients(t *testing.T) {
	rng := randoms(4)
	x, dy := normal[float64](rng, 4, 5), normal[float64](rng, 4, 5)
	got := apply(t, job{}, graph.GELUDX, graph.Attrs{}, x, dy)[0]
	gradients(t, graph.GELU, graph.Attrs{}, []tensor64{x}, []tensor64{dy}, map[int]tensor64{0: got})
	for _, kind := range [][2]graph.Kind{{graph.Sigmoid, graph.SigmoidDX}, {graph.Tanh, graph.TanhDX}} {
		y := apply(t, job{}, kind[0], graph.Attrs{}, x)[0]
		got := apply(t, job{}, kind[1], graph.Attrs{}, y, dy)[0]
		gradients(t, kind[0], graph.Attrs{}, []tensor64{x}, []tensor64{dy}, map[int]tensor64{0: got})
	}
}

func TestBlendGradients(t *testing.T) {
	rng := randoms(5)
	in := []tensor64{normal[float64](rng, 7), normal[float64](rng, 7), normal[float64](rng, 7)}
	dy := normal[float64](rng, 7)
	got := apply(t, job{}, graph.BlendGrad, graph.Attrs{}, in[0], in[1], in[2], dy)
	gradients(t, graph.Blend, graph.Attrs{}, in, []tensor64{dy}, map[int]tensor64{0: got[0], 1: got[1], 2: got[2]})
}

func TestSoftmaxGradient(t *testing.T) {
	for _, causal := range []bool{false, true} {
		rng, attrs := randoms(6), graph.Attrs{Factor: 0.7, Causal: causal}
		x, dy := normal[float64](rng, 2, 4, 4), normal[float64](rng, 2, 4, 4)
		y := apply(t, job{}, graph.Softmax, attrs, x)[0]
		got := apply(t, job{}, graph.SoftmaxDX, graph.Attrs{Factor: 0.7}, y, dy)[0]
		gradients(t, graph.Softmax, attrs, []tensor64{x}, []tensor64{dy}, map[int]tensor64{0: got})
	}
}

func TestAdditiveScoresGradients(t *testing.T) {
	rng := randoms(7)
	in := []tensor64{normal[float64](rng, 2, 3, 4), normal[float64](rng, 2, 5, 4), normal[float64](rng, 4)}
	de := normal[float64](rng, 2, 3, 5)
	got := apply(t, job{}, graph.AdditiveScoresGrad, graph.Attrs{}, in[0], in[1], in[2], de)
	gradients(t, graph.AdditiveScores, graph.Attrs{}, in, []tensor64{de}, map[int]tensor64{0: got[0], 1: got[1],
		2: got[2]})
}

// The gradient of x is that of r too. Without dc the loss does not depend on c.
func TestLSTMGradients(t *testing.T) {
	rng := randoms(8)
	all := []tensor64{normal[float64](rng, 2, 12), normal[float64](rng, 2, 12), normal[float64](rng, 2, 3)}
	dys := []tensor64{normal[float64](rng, 2, 3), normal[float64](rng, 2, 3)}
	for _, operands := range []int{1, 3} {
		for _, outputs := range []int{1, 2} {
			in, dys := all[:operands], dys[:outputs]
			got := apply(t, job{}, graph.LSTMGrad, graph.Attrs{}, append(append([]tensor64{}, in...), dys...)...)
			want := map[int]tensor64{0: got[0]}
			if operands == 3 {
				want[1], want[2] = got[0], got[1]
			}
			gradients(t, graph.LSTM, graph.Attrs{}, in, dys, want)
		}
	}
}

func TestPairLossGradients(t *testing.T) {
	rng := randoms(9)
	a, b, one := normal[float64](rng, 3, 4), shares(rng, 3, 4), tensor64{graph.Shape{1}, []float64{1}}
	for _, kind := range [][2]graph.Kind{{graph.MeanSquare, graph.MeanSquareDX},
		{graph.SigmoidXent, graph.SigmoidXentDX}} {
		got := apply(t, job{}, kind[1], graph.Attrs{}, a, b)[0]
		gradients(t, kind[0], graph.Attrs{}, []tensor64{a, b}, []tensor64{one}, map[int]tensor64{0: got})
	}
}

// Rows without a label have no gradient, and do not count in the mean.
func TestMaskedXentGradient(t *testing.T) {
	rng := randoms(10)
	logits, classes := normal[float64](rng, 6, 5), labels[float64](rng, 6, 5)
	classes.data[1], classes.data[4] = -1, -7
	p := apply(t, job{}, graph.SoftmaxXent, graph.Attrs{}, logits, classes)[1]
	got := apply(t, job{}, graph.SoftmaxXentDX, graph.Attrs{}, p, classes)[0]
	one := tensor64{graph.Shape{1}, []float64{1}}
	gradients(t, graph.SoftmaxXent, graph.Attrs{}, []tensor64{logits, classes}, []tensor64{one},
		map[int]tensor64{0: got})
}
