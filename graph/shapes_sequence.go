package graph

import "fmt"

func embeddingShapes(_ Attrs, in []Shape) ([]Shape, error) {
	if err := first(wants("table", in[0], -1, -1), wants("ids", in[1], -1)); err != nil {
		return nil, err
	}
	return []Shape{{in[1][0], in[0][1]}}, nil
}

func embeddingDWShapes(a Attrs, in []Shape) ([]Shape, error) {
	if err := wants("ids", in[0], -1); err != nil {
		return nil, err
	}
	if err := wants("dy", in[1], in[0][0], -1); err != nil {
		return nil, err
	}
	if a.Extent[0] < 1 {
		return nil, fmt.Errorf("a table of %d rows: the extent must be positive", a.Extent[0])
	}
	return []Shape{{a.Extent[0], in[1][1]}}, nil
}

func biasAddShapes(_ Attrs, in []Shape) ([]Shape, error) {
	if err := wants("x", in[0], -1, -1); err != nil {
		return nil, err
	}
	return in[:1], wants("b", in[1], in[0][1])
}

func layerNormShapes(_ Attrs, in []Shape) ([]Shape, error) {
	x := in[0]
	if err := wants("x", x, -1, -1); err != nil {
		return nil, err
	}
	return []Shape{x, {x[0]}, {x[0]}}, first(wants("gamma", in[1], x[1]), wants("beta", in[2], x[1]))
}

func layerNormGradShapes(_ Attrs, in []Shape) ([]Shape, error) {
	x := in[0]
	if err := wants("x", x, -1, -1); err != nil {
		return nil, err
	}
	return []Shape{x, {x[1]}, {x[1]}}, first(wants("mean", in[1], x[0]), wants("scale", in[2], x[0]),
		wants("gamma", in[3], x[1]), wants("dy", in[4], x...))
}

// lstmShapes checks x, and r and c if they are there, and returns the shapes of h and c.
func lstmShapes(_ Attrs, in []Shape) ([]Shape, error) {
	if len(in) == 2 {
		return nil, fmt.Errorf("takes 1 or 3 inputs, got 2")
	}
	x := in[0]
	if err := wants("x", x, -1, -1); err != nil {
		return nil, err
	}
	if x[1]%4 != 0 {
		return nil, fmt.Errorf("x has shape %v, which is not that of four gates", x)
	}
	state := Shape{x[0], x[1] / 4}
	if len(in) == 3 {
		if err := first(wants("r", in[1], x...), wants("c", in[2], state...)); err != nil {
			return nil, err
		}
	}
	return []Shape{state, state}, nil
}

// LSTMGradOperands returns how many of an lstm_grad's inputs are those of its forward op; dh, and maybe dc, follow.
func LSTMGradOperands(inputs int) int {
	if inputs <= 3 {
		return 1
	}
	return 3
}

func lstmGradShapes(a Attrs, in []Shape) ([]Shape, error) {
	n := LSTMGradOperands(len(in))
	state, err := lstmShapes(a, in[:n])
	if err != nil {
		return nil, err
	}
	for i, what := range []string{"dh", "dc"}[:len(in)-n] {
		if err := wants(what, in[n+i], state[0]...); err != nil {
			return nil, err
		}
	}
	return []Shape{in[0], state[1]}, nil
}

// pairLoss is the rule of a loss of two tensors that are alike.
func pairLoss(a Attrs, in []Shape) ([]Shape, error) {
	_, err := likeFirst(1)(a, in)
	return []Shape{{1}}, err
}
