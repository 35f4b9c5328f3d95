package kernel

import (
	"tensile/device/cpu/gemm"
	"tensile/device/cpu/vector"
	"tensile/graph"
)

// gates are the four gates of some elements of a row of an LSTM after their nonlinearities, and what it remembers.
type gates[T gemm.Float] struct {
	input, forget, cell, output [part]T
	before, state, squashed     [part]T // of the memory: that of the step before, the new one, and its tanh
}

// part is how many elements are computed together.
const part = 256

// compute computes the elements from number at on that are in the same row, at most part, and returns how many these
// are. operands are x, and r and c if they are there.
func (g *gates[T]) compute(operands [][]T, hidden, at int) (n int) {
	r, j := at/hidden, at%hidden
	n = min(part, hidden-j)
	for i, gate := range [4]*[part]T{&g.input, &g.forget, &g.cell, &g.output} {
		to, from := gate[:n], (4*r+i)*hidden+j
		copy(to, operands[0][from:])
		if len(operands) == 3 {
			vector.Add(to, to, operands[1][from:])
		}
		if gate == &g.cell {
			vector.Tanh(to, to)
		} else {
			vector.Sigmoid(to, to)
		}
	}
	clear(g.before[:n])
	if len(operands) == 3 {
		copy(g.before[:n], operands[2][at:])
	}
	for i := range n {
		g.state[i] = T(g.forget[i]*g.before[i]) + T(g.input[i]*g.cell[i])
	}
	vector.Tanh(g.squashed[:n], g.state[:n])
	return n
}

// lstm: x (r c) -> h c.
func lstm[T gemm.Float](c *Call[T]) {
	h, state, rows, hidden := c.Out[0], c.Out[1], c.OutShapes[0][0], c.OutShapes[0][1]
	var g gates[T]
	for at, n := 0, 0; at < rows*hidden; at += n {
		n = g.compute(c.In, hidden, at)
		if h != nil {
			vector.Multiply(h[at:], g.output[:n], g.squashed[:n])
		}
		if state != nil {
			copy(state[at:], g.state[:n])
		}
	}
}

// lstmGrad: x (r c) dh (dc) -> dx dc. The gates are computed again.
func lstmGrad[T gemm.Float](c *Call[T]) {
	operands := graph.LSTMGradOperands(len(c.In))
	grads, dx, dc := c.In[operands:], c.Out[0], c.Out[1]
	rows, hidden := c.OutShapes[1][0], c.OutShapes[1][1]
	var g gates[T]
	for first, n := 0, 0; first < rows*hidden; first += n {
		n = g.compute(c.In[:operands], hidden, first)
		for i := range n {
			at := first + i
			input, forget, cell, output := float64(g.input[i]), float64(g.forget[i]), float64(g.cell[i]),
				float64(g.output[i])
			dh, y := float64(grads[0][at]), float64(g.squashed[i])
			d := dh * output * (1 - y*y) // of the new state
			if len(grads) == 2 {
				d += float64(grads[1][at])
			}
			if dc != nil {
				dc[at] = T(d * forget)
			}
			if dx == nil {
				continue
			}
			for gate, v := range [4]float64{
				sigmoidDX(input, d*cell), sigmoidDX(forget, d*float64(g.before[i])), tanhDX(cell, d*input),
				sigmoidDX(output, dh*y),
			} {
				dx[(4*(at/hidden)+gate)*hidden+at%hidden] = T(v)
			}
		}
	}
}
