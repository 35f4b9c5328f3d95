package graph

import "fmt"

func matmulShapes(at Attrs, in []Shape) ([]Shape, error) {
	a, b := in[0], in[1]
	if err := first(wants("a", a, -1, -1, -1), wants("b", b, -1, -1, -1)); err != nil {
		return nil, err
	}
	m, k, n := a[1], a[2], b[2]
	if at.TransposeA {
		m, k = k, m
	}
	want := Shape{a[0], k, -1}
	if at.TransposeB {
		n = b[1]
		want = Shape{a[0], -1, k}
	}
	return []Shape{{a[0], m, n}}, wants("b", b, want...)
}

func matmulFLOPs(at Attrs, in, out []Shape) int64 {
	k := in[0][2]
	if at.TransposeA {
		k = in[0][1]
	}
	return matrix(out[0], k)
}

func transposeShapes(_ Attrs, in []Shape) ([]Shape, error) {
	x := in[0]
	if err := wants("x", x, -1, -1, -1, -1); err != nil {
		return nil, err
	}
	return []Shape{{x[0], x[2], x[1], x[3]}}, nil
}

func softmaxShapes(a Attrs, in []Shape) ([]Shape, error) {
	x := in[0]
	if err := wants("x", x, -1, -1, -1); err != nil {
		return nil, err
	}
	if a.Causal && x[1] != x[2] {
		return nil, fmt.Errorf("x has shape %v: causal, it must have as many rows as columns", x)
	}
	return in[:1], nil
}

func softmaxDXShapes(a Attrs, in []Shape) ([]Shape, error) {
	if err := wants("y", in[0], -1, -1, -1); err != nil {
		return nil, err
	}
	return likeFirst(1)(a, in)
}

func scoresShapes(_ Attrs, in []Shape) ([]Shape, error) {
	q, k := in[0], in[1]
	if err := wants("q", q, -1, -1, -1); err != nil {
		return nil, err
	}
	if err := first(wants("k", k, q[0], -1, q[2]), wants("v", in[2], q[2])); err != nil {
		return nil, err
	}
	return []Shape{{q[0], q[1], k[1]}}, nil
}

func scoresGradShapes(a Attrs, in []Shape) ([]Shape, error) {
	e, err := scoresShapes(a, in[:3])
	if err != nil {
		return nil, err
	}
	return in[:3], wants("de", in[3], e[0]...)
}

// perScore is the arithmetic of additive attention: the same for each query, key and feature.
func perScore(n int64) func(Attrs, []Shape, []Shape) int64 {
	return func(_ Attrs, in, _ []Shape) int64 {
		return times(n, int64(in[0].Elements()), int64(in[1][1]))
	}
}
