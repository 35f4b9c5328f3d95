package graph

import "fmt"

// Steps of recurrent networks. Operand orders are part of a kind's meaning.
const (
	// A step of long short-term memory. The gates input, forget, cell and output stand side by side before their
	// nonlinearities, x being what comes from below and r what comes from the step before. In the first step, where h
	// and c of the step before are zero, r and c are left out, and x includes the bias that r has in later steps.
	LSTM     Kind = "lstm"      // x[N,4H] (r[N,4H] c[N,H]) -> h[N,H] c[N,H]
	LSTMGrad Kind = "lstm_grad" // x (r c) dh (dc) -> dx[N,4H], which is dr too, and dc of the step before
)

var recurrent = map[Kind]kind{
	LSTM:     {inputs: [2]int{1, 3}, outputs: []int{fresh, fresh}, shapes: lstmShapes, flops: perInput(7)},
	LSTMGrad: {inputs: [2]int{2, 5}, outputs: []int{fresh, fresh}, shapes: lstmGradShapes, flops: perInput(12)},
}

// lstmShapes checks x, and r and c if they are there, and returns the shapes of h and c.
func lstmShapes(_ Attrs, in []Shape) ([]Shape, error) {
	if len(in) == 2 {
		return nil, fmt.Errorf("takes 1 or 3 inputs, got 2")
	}
	x := in[0]
	if err := checkExtents("x", x, -1, -1); err != nil {
		return nil, err
	}
	if x[1]%4 != 0 {
		return nil, fmt.Errorf("x has shape %v, which is not that of four gates", x)
	}
	state := Shape{x[0], x[1] / 4}
	if len(in) == 3 {
		if err := firstError(checkExtents("r", in[1], x...), checkExtents("c", in[2], state...)); err != nil {
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
		if err := checkExtents(what, in[n+i], state[0]...); err != nil {
			return nil, err
		}
	}
	return []Shape{in[0], state[1]}, nil
}
