package graph

import "fmt"

// Products of matrices, and the sums of rows that go with them. Operand orders are part of a kind's meaning.
const (
	Linear   Kind = "linear"    // x[N,I] w[O,I] (b[O]) -> y[N,O]
	LinearDW Kind = "linear_dw" // x dy -> dw; Begin and Length: these rows of it alone
	LinearDX Kind = "linear_dx" // dy w -> dx
	Bias     Kind = "bias"      // x[N,K] b[K] -> x + b in every row
	BiasDB   Kind = "bias_db"   // dy[N,K,...] -> db[K]: sums over every dimension but the second
	// a[B,M,K] b[B,K,N] -> y[B,M,N], a or b stored the other way round by TransposeA, TransposeB
	MatMul Kind = "matmul"
)

var products = map[Kind]kind{
	Linear: {inputs: [2]int{2, 3}, outputs: []int{fresh}, shapes: linearShapes, flops: linearFLOPs},
	LinearDW: {inputs: [2]int{2, 2}, outputs: []int{fresh}, shapes: linearDWShapes, flops: linearDWFLOPs,
		traffic: linearDWTraffic, attrs: names("begin", "length")},
	LinearDX: {inputs: [2]int{2, 2}, outputs: []int{fresh}, shapes: linearDXShapes, flops: linearDXFLOPs},
	Bias:     {inputs: [2]int{2, 2}, outputs: []int{fresh}, shapes: biasAddShapes, flops: perOutput(1)},
	BiasDB:   {inputs: [2]int{1, 1}, outputs: []int{fresh}, shapes: biasShapes, flops: perInput(1)},
	MatMul: {inputs: [2]int{2, 2}, outputs: []int{fresh}, shapes: matmulShapes, flops: matmulFLOPs,
		attrs: names("transpose_a", "transpose_b")},
}

func linearShapes(_ Attrs, in []Shape) ([]Shape, error) {
	x, w := in[0], in[1]
	if err := firstError(checkExtents("x", x, -1, -1), checkExtents("w", w, -1, -1)); err != nil {
		return nil, err
	}
	if err := checkExtents("w", w, -1, x[1]); err != nil {
		return nil, err
	}
	if len(in) == 3 {
		if err := checkExtents("b", in[2], w[0]); err != nil {
			return nil, err
		}
	}
	return []Shape{{x[0], w[0]}}, nil
}

func linearDWShapes(a Attrs, in []Shape) ([]Shape, error) {
	x, dy := in[0], in[1]
	if err := checkExtents("x", x, -1, -1); err != nil {
		return nil, err
	}
	if err := checkExtents("dy", dy, x[0], -1); err != nil {
		return nil, err
	}
	rows, err := a.rows(dy[1])
	return []Shape{{rows, x[1]}}, err
}

func linearDXShapes(_ Attrs, in []Shape) ([]Shape, error) {
	dy, w := in[0], in[1]
	if err := checkExtents("w", w, -1, -1); err != nil {
		return nil, err
	}
	if err := checkExtents("dy", dy, -1, w[0]); err != nil {
		return nil, err
	}
	return []Shape{{dy[0], w[1]}}, nil
}

func linearFLOPs(_ Attrs, in, out []Shape) int64 { return matrix(out[0], in[0][1]) }

func linearDWFLOPs(_ Attrs, in, out []Shape) int64 { return matrix(out[0], in[0][0]) }

// linearDWTraffic: a tile reads all of x, and the columns of dy that its rows are made of.
func linearDWTraffic(a Attrs, shapes []Shape, in, out []Bytes) Bytes {
	return in[0] + part(a, in[1], shapes[1][1]) + out[0]
}

func linearDXFLOPs(_ Attrs, in, out []Shape) int64 { return matrix(out[0], in[0][1]) }

// matrix is the arithmetic of a product with this output, summed over k.
func matrix(out Shape, k int) int64 { return times(2, int64(out.Elements()), int64(k)) }

func biasAddShapes(_ Attrs, in []Shape) ([]Shape, error) {
	if err := checkExtents("x", in[0], -1, -1); err != nil {
		return nil, err
	}
	return in[:1], checkExtents("b", in[1], in[0][1])
}

func biasShapes(_ Attrs, in []Shape) ([]Shape, error) {
	if len(in[0]) < 2 {
		return nil, fmt.Errorf("dy has shape %v, want at least two dimensions", in[0])
	}
	return []Shape{{in[0][1]}}, nil
}

func matmulShapes(at Attrs, in []Shape) ([]Shape, error) {
	a, b := in[0], in[1]
	if err := firstError(checkExtents("a", a, -1, -1, -1), checkExtents("b", b, -1, -1, -1)); err != nil {
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
	return []Shape{{a[0], m, n}}, checkExtents("b", b, want...)
}

func matmulFLOPs(at Attrs, in, out []Shape) int64 {
	k := in[0][2]
	if at.TransposeA {
		k = in[0][1]
	}
	return matrix(out[0], k)
}
