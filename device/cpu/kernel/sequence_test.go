package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"tensile/device/cpu/gemm"
	"tensile/graph"
)

func TestEmbedding(t *testing.T) {
	table := counting(0, 4, 2)
	ids := tensor[float32]{graph.Shape{5}, asIndices[float32](3, 0, 3, 1, 3)}
	y := apply(t, job{}, graph.Embedding, graph.Attrs{}, table, ids)[0]
	if want := []float32{6, 7, 0, 1, 6, 7, 2, 3, 6, 7}; !slices.Equal(y.data, want) {
		t.Errorf("y = %v, want %v", y.data, want)
	}
	dy := tensor[float32]{graph.Shape{5, 2}, []float32{1, 2, 3, 4, 1e8, 6, 7, 8, -1e8, 10}}
	dtable := apply(t, job{}, graph.EmbeddingDW, graph.Attrs{Extent: [2]int{4}}, ids, dy)[0]
	// 1 + 1e8 - 1e8 is 0 in this order, and 1 in others.
	if want := []float32{3, 4, 7, 8, 0, 0, 0, 18}; !slices.Equal(dtable.data, want) {
		t.Errorf("dtable = %v, want %v", dtable.data, want)
	}
}

func TestTranspose(t *testing.T) {
	x := counting(0, 2, 3, 4, 5)
	y := apply(t, job{}, graph.Transpose, graph.Attrs{}, x)[0]
	each(y.shape, func(i []int) {
		if got, want := at(y, i), at(x, []int{i[0], i[2], i[1], i[3]}); got != want {
			t.Errorf("y%v = %v, want %v", i, got, want)
		}
	})
	if back := apply(t, job{}, graph.Transpose, graph.Attrs{}, y)[0]; !slices.Equal(back.data, x.data) {
		t.Error("transposed twice it is another tensor")
	}
}

// forEachMatMul visits the four forms of a product with the operands as they enter it, a[2,3,4] and b[2,4,5], and as
// they are stored.
func forEachMatMul[T gemm.Float](t *testing.T, check func(t *testing.T, attrs graph.Attrs, entered,
	stored [2]tensor[T])) {
	for form := range 4 {
		attrs := graph.Attrs{TransposeA: form&1 != 0, TransposeB: form&2 != 0}
		t.Run(fmt.Sprintf("a=%v,b=%v", attrs.TransposeA, attrs.TransposeB), func(t *testing.T) {
			rng := randoms(uint64(form))
			entered := [2]tensor[T]{normal[T](rng, 2, 3, 4), normal[T](rng, 2, 4, 5)}
			stored := entered
			for i, turned := range []bool{attrs.TransposeA, attrs.TransposeB} {
				if turned {
					stored[i] = turn(t, entered[i])
				}
			}
			check(t, attrs, entered, stored)
		})
	}
}

// turn transposes every matrix of x[B,M,N].
func turn[T gemm.Float](t *testing.T, x tensor[T]) tensor[T] {
	s := x.shape
	y := apply(t, job{}, graph.Transpose, graph.Attrs{}, tensor[T]{graph.Shape{s[0], s[1], s[2], 1}, x.data})[0]
	return tensor[T]{graph.Shape{s[0], s[2], s[1]}, y.data}
}

func TestMatMulAgainstSlow(t *testing.T) {
	j := job{engine: engine(t, 1)}
	forEachMatMul(t, func(t *testing.T, attrs graph.Attrs, entered, stored [2]tensor[float32]) {
		var want []float64
		each(graph.Shape{2, 3, 5}, func(i []int) {
			sum := 0.0
			for k := range 4 {
				sum += float64(at(entered[0], []int{i[0], i[1], k})) * float64(at(entered[1], []int{i[0], k, i[2]}))
			}
			want = append(want, sum)
		})
		near(t, "y", apply(t, j, graph.MatMul, attrs, stored[0], stored[1])[0].data, want, 1e-6)
	})
}

// Rows of a layer norm have mean 0 and variance 1 before gamma and beta, whatever they are shifted by.
func TestLayerNormAgainstSlow(t *testing.T) {
	rng := randoms(3)
	const n, d = 4, 7
	x, gamma, beta := normal[float32](rng, n, d), normal[float32](rng, d), normal[float32](rng, d)
	var want, means, scales []float64
	for r := range n {
		var mean, variance float64
		for i := range d {
			x.data[r*d+i] += float32(10 * r)
			mean += float64(x.data[r*d+i]) / d
		}
		for i := range d {
			variance += math.Pow(float64(x.data[r*d+i])-mean, 2) / d
		}
		means, scales = append(means, mean), append(scales, 1/math.Sqrt(variance+1e-5))
		for i := range d {
			want = append(want, (float64(x.data[r*d+i])-mean)*scales[r]*float64(gamma.data[i])+float64(beta.data[i]))
		}
	}
	got := apply(t, job{}, graph.LayerNorm, graph.Attrs{Epsilon: 1e-5}, x, gamma, beta)
	for i, want := range [][]float64{want, means, scales} {
		near(t, []string{"y", "mean", "scale"}[i], got[i].data, want, 1e-6)
	}
}

func TestActivations(t *testing.T) {
	x := tensor[float64]{graph.Shape{6}, []float64{-800, -1, 0, 0.5, 2, 800}}
	for kind, want := range map[graph.Kind][]float64{ // from tables of the functions
		graph.GELU:    {0, -0.158655253931457, 0, 0.345731230637006, 1.954499736103642, 800},
		graph.Sigmoid: {0, 0.268941421369995, 0.5, 0.622459331201855, 0.880797077977882, 1},
		graph.Tanh:    {-1, -0.761594155955765, 0, 0.462117157260010, 0.964027580075817, 1},
	} {
		got := apply(t, job{}, kind, graph.Attrs{}, x)[0].data
		for i := range got {
			if !(math.Abs(got[i]-want[i]) <= 1e-14) {
				t.Errorf("%s(%v) = %v, want %v", kind, x.data[i], got[i], want[i])
			}
		}
	}
}

func TestBlend(t *testing.T) {
	vector := func(v ...float32) tensor[float32] { return tensor[float32]{graph.Shape{len(v)}, v} }
	got := apply(t, job{}, graph.Blend, graph.Attrs{}, vector(0, 1, 0.25), vector(1, 2, 4), vector(5, 6, 8))[0]
	if want := []float32{5, 2, 7}; !slices.Equal(got.data, want) {
		t.Errorf("blend = %v, want %v", got.data, want)
	}
}

// Rows of a softmax are shares of what they may see; those of a causal one do not depend on later columns.
func TestSoftmax(t *testing.T) {
	for _, causal := range []bool{false, true} {
		x := normal[float64](randoms(5), 2, 4, 4)
		x.data[1] = 4e3 // would overflow if taken as it is
		want := make([]float64, len(x.data))
		each(graph.Shape{2, 4}, func(i []int) {
			row, out, sum := x.data[(i[0]*4+i[1])*4:][:4], want[(i[0]*4+i[1])*4:][:4], 0.0
			if causal {
				row, out = row[:i[1]+1], out[:i[1]+1]
			}
			for s, v := range row {
				out[s] = math.Exp(0.5 * (v - slices.Max(row)))
				sum += out[s]
			}
			for s := range out {
				out[s] /= sum
			}
		})
		near(t, "y", apply(t, job{}, graph.Softmax, graph.Attrs{Factor: 0.5, Causal: causal}, x)[0].data, want, 1e-14)
	}
}

func TestAdditiveScoresAgainstSlow(t *testing.T) {
	rng := randoms(6)
	q, k, v := normal[float32](rng, 2, 3, 4), normal[float32](rng, 2, 5, 4), normal[float32](rng, 4)
	var want []float64
	each(graph.Shape{2, 3, 5}, func(i []int) {
		sum := 0.0
		for a := range 4 {
			sum += float64(v.data[a]) * math.Tanh(float64(at(q, []int{i[0], i[1], a})+at(k, []int{i[0], i[2], a})))
		}
		want = append(want, sum)
	})
	near(t, "e", apply(t, job{}, graph.AdditiveScores, graph.Attrs{}, q, k, v)[0].data, want, 1e-6)
}

// slowLSTM is a step as Hochreiter and Schmidhuber's followers write it, a gate at a time.
func slowLSTM(x, r, c tensor64) (h, state []float64) {
	n, hidden := c.shape[0], c.shape[1]
	logistic := func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }
	for row := range n {
		for j := range hidden {
			gate := func(i int) float64 { return at64(x, row, i*hidden+j) + at64(r, row, i*hidden+j) }
			s := logistic(gate(1))*at64(c, row, j) + logistic(gate(0))*math.Tanh(gate(2))
			state, h = append(state, s), append(h, logistic(gate(3))*math.Tanh(s))
		}
	}
	return h, state
}

func at64(x tensor64, row, column int) float64 { return x.data[row*x.shape[1]+column] }

// In the first step, r and c count as zero.
func TestLSTMAgainstSlow(t *testing.T) {
	rng := randoms(7)
	x, r, c := normal[float64](rng, 2, 12), normal[float64](rng, 2, 12), normal[float64](rng, 2, 3)
	for _, first := range []bool{false, true} {
		in := []tensor64{x, r, c}
		if first {
			clear(r.data)
			clear(c.data)
			in = in[:1]
		}
		h, state := slowLSTM(x, r, c)
		got := apply(t, job{}, graph.LSTM, graph.Attrs{}, in...)
		near(t, "h", got[0].data, h, 1e-15)
		near(t, "c", got[1].data, state, 1e-15)
	}
}

// Several steps of an LSTM from x[S,N,I], w[4H,I], u[4H,H] and a bias for each of the two products, which every step
// adds, the first too, where h is zero.
func TestLSTMStepsAgainstSlow(t *testing.T) {
	const steps, n, in, hidden = 3, 2, 5, 3
	rng, j := randoms(8), job{engine: engine(t, 1)}
	xs, w, u := normal[float64](rng, steps, n, in), normal[float64](rng, 4*hidden, in), normal[float64](rng, 4*hidden,
		hidden)
	wb, ub := normal[float64](rng, 4*hidden), normal[float64](rng, 4*hidden)
	matrix := func(data []float64, columns int) tensor64 { return tensor64{graph.Shape{n, columns}, data} }
	product := func(x, w, b tensor64) tensor64 {
		y := make([]float64, 0, n*4*hidden)
		for row := range n {
			for gate := range 4 * hidden {
				sum := b.data[gate]
				for i := range x.shape[1] {
					sum += at64(x, row, i) * at64(w, gate, i)
				}
				y = append(y, sum)
			}
		}
		return matrix(y, 4*hidden)
	}
	slowH, slowC := matrix(make([]float64, n*hidden), hidden), matrix(make([]float64, n*hidden), hidden)
	var h, c tensor64
	for step := range steps {
		x := matrix(xs.data[step*n*in:][:n*in], in)
		slowH.data, slowC.data = slowLSTM(product(x, w, wb), product(slowH, u, ub), slowC)

		below := apply(t, j, graph.Linear, graph.Attrs{}, x, w, wb)[0]
		operands := []tensor64{below}
		if step == 0 {
			operands[0] = apply(t, job{}, graph.Bias, graph.Attrs{}, below, ub)[0]
		} else {
			operands = append(operands, apply(t, j, graph.Linear, graph.Attrs{}, h, u, ub)[0], c)
		}
		out := apply(t, job{}, graph.LSTM, graph.Attrs{}, operands...)
		h, c = out[0], out[1]
		near(t, fmt.Sprintf("h of step %d", step+1), h.data, slowH.data, 1e-14)
		near(t, fmt.Sprintf("c of step %d", step+1), c.data, slowC.data, 1e-14)
	}
}

func TestPairLosses(t *testing.T) {
	vector := func(v ...float64) tensor64 { return tensor64{graph.Shape{len(v)}, v} }
	got := apply(t, job{}, graph.MeanSquare, graph.Attrs{}, vector(1, 2, 3, 4), vector(1, 4, 0, 4))[0].data[0]
	if got != (4+9)/4. {
		t.Errorf("mean square = %v, want %v", got, (4+9)/4.)
	}
	// -log(1/2), -log(σ(800)), -log(1-σ(800)) and the entropy of a fair coin
	got = apply(t, job{}, graph.SigmoidXent, graph.Attrs{}, vector(0, 800, 800, 0), vector(1, 1, 0, 0.5))[0].data[0]
	if want := (2*math.Ln2 + 800) / 4; math.Abs(got-want) > 1e-12 {
		t.Errorf("sigmoid cross entropy = %v, want %v", got, want)
	}
}

// Rows with a negative label are as if they were not there; without any other the loss is zero.
func TestMaskedLabels(t *testing.T) {
	rng := randoms(8)
	logits, masked := normal[float64](rng, 4, 3), tensor64{graph.Shape{4}, []float64{2, -1, 0, -100}}
	some := tensor64{graph.Shape{2, 3}, append(slices.Clone(logits.data[:3]), logits.data[6:9]...)}
	dense := tensor64{graph.Shape{2}, []float64{2, 0}}
	got := apply(t, job{}, graph.SoftmaxXent, graph.Attrs{}, logits, masked)
	want := apply(t, job{}, graph.SoftmaxXent, graph.Attrs{}, some, dense)
	near(t, "loss", got[0].data, want[0].data, 0)
	d := apply(t, job{}, graph.SoftmaxXentDX, graph.Attrs{}, got[1], masked)[0]
	two := apply(t, job{}, graph.SoftmaxXentDX, graph.Attrs{}, want[1], dense)[0].data
	near(t, "dlogits", d.data, slices.Concat(two[:3], make([]float64, 3), two[3:], make([]float64, 3)), 0)

	nothing := tensor64{graph.Shape{4}, []float64{-1, -1, -1, -1}}
	got = apply(t, job{}, graph.SoftmaxXent, graph.Attrs{}, logits, nothing)
	near(t, "loss of no rows", got[0].data, []float64{0}, 0)
	near(t, "dlogits of no rows", apply(t, job{}, graph.SoftmaxXentDX, graph.Attrs{}, got[1], nothing)[0].data,
		make([]float64, 12), 0)
}

func shares(rng *rand.Rand, shape ...int) tensor64 {
	x := normal[float64](rng, shape...)
	for i := range x.data {
		x.data[i] = rng.Float64()
	}
	return x
}
