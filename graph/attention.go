package graph

import "fmt"

// Attention: softmax of scores, and additive scores. Operand orders are part of a kind's meaning.
const (
	Softmax   Kind = "softmax"    // x[N,T,S] -> y, over S, of Factor*x; Causal: T is S, and step t sees none after t
	SoftmaxDX Kind = "softmax_dx" // y dy -> dx; Factor

	// Additive attention's energies (Bahdanau et al.): how well each query fits each key, Σ v*tanh(q+k) over A.
	AdditiveScores     Kind = "additive_scores"      // q[N,T,A] k[N,S,A] v[A] -> e[N,T,S]
	AdditiveScoresGrad Kind = "additive_scores_grad" // q k v de -> dq dk dv
)

var attention = map[Kind]kind{
	Softmax: {inputs: [2]int{1, 1}, outputs: []int{fresh}, shapes: softmaxShapes, flops: perOutput(6),
		attrs: names("factor", "causal"), check: factorCheck},
	SoftmaxDX: {inputs: [2]int{2, 2}, outputs: []int{fresh}, shapes: softmaxDXShapes, flops: perOutput(5),
		attrs: names("factor"), check: factorCheck},
	AdditiveScores: {inputs: [2]int{3, 3}, outputs: []int{fresh}, shapes: scoresShapes, flops: perScore(9)},
	AdditiveScoresGrad: {inputs: [2]int{4, 4}, outputs: []int{fresh, fresh, fresh}, shapes: scoresGradShapes,
		flops: perScore(15)},
}

func softmaxShapes(a Attrs, in []Shape) ([]Shape, error) {
	x := in[0]
	if err := checkExtents("x", x, -1, -1, -1); err != nil {
		return nil, err
	}
	if a.Causal && x[1] != x[2] {
		return nil, fmt.Errorf("x has shape %v: causal, it must have as many rows as columns", x)
	}
	return in[:1], nil
}

func softmaxDXShapes(a Attrs, in []Shape) ([]Shape, error) {
	if err := checkExtents("y", in[0], -1, -1, -1); err != nil {
		return nil, err
	}
	return likeFirst(1)(a, in)
}

func factorCheck(a Attrs) error { return positive("factor", a.Factor) }

func scoresShapes(_ Attrs, in []Shape) ([]Shape, error) {
	q, k := in[0], in[1]
	if err := checkExtents("q", q, -1, -1, -1); err != nil {
		return nil, err
	}
	if err := firstError(checkExtents("k", k, q[0], -1, q[2]), checkExtents("v", in[2], q[2])); err != nil {
		return nil, err
	}
	return []Shape{{q[0], q[1], k[1]}}, nil
}

func scoresGradShapes(a Attrs, in []Shape) ([]Shape, error) {
	e, err := scoresShapes(a, in[:3])
	if err != nil {
		return nil, err
	}
	return in[:3], checkExtents("de", in[3], e[0]...)
}

// perScore is the arithmetic of additive attention: the same for each query, key and feature.
func perScore(n int64) func(Attrs, []Shape, []Shape) int64 {
	return func(_ Attrs, in, _ []Shape) int64 {
		return times(n, int64(in[0].Elements()), int64(in[1][1]))
	}
}
