package graph

import "fmt"

// Repetition along a dimension, and the sum over one: each is the gradient of the other.
const (
	Expand  Kind = "expand"   // x[A,C] -> y[A,N,C]: each row N times; Extent[0] is N
	SumOver Kind = "sum_over" // x[A,N,C] -> y[A,C]: the sum over N
)

var broadcasts = map[Kind]kind{
	Expand: {inputs: [2]int{1, 1}, outputs: []int{fresh}, shapes: expandShapes, flops: noArithmetic,
		attrs: names("extent")},
	SumOver: {inputs: [2]int{1, 1}, outputs: []int{fresh}, shapes: sumOverShapes, flops: perInput(1)},
}

func expandShapes(a Attrs, in []Shape) ([]Shape, error) {
	if err := checkExtents("x", in[0], -1, -1); err != nil {
		return nil, err
	}
	if a.Extent[0] < 1 {
		return nil, fmt.Errorf("extent %d must be positive", a.Extent[0])
	}
	return []Shape{{in[0][0], a.Extent[0], in[0][1]}}, nil
}

func sumOverShapes(_ Attrs, in []Shape) ([]Shape, error) {
	if err := checkExtents("x", in[0], -1, -1, -1); err != nil {
		return nil, err
	}
	return []Shape{{in[0][0], in[0][2]}}, nil
}
