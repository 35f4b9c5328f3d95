package kernel

import (
	"math"

	"tensile/device/cpu/gemm"
	"tensile/graph"
)

// gates are the four gates of one element of an LSTM after their nonlinearities, and what it remembers.
type gates struct {
	input, forget, cell, output float64
	before, state               float64 // of the memory: that of the step before, and the new one
}

// gatesOf computes element j of row r. operands are x, and r and c if they are there.
func gatesOf[T gemm.Float](operands [][]T, hidden, r, j int) gates {
	sum := func(gate int) float64 {
		at := (4*r+gate)*hidden + j
		v := float64(operands[0][at])
		if len(operands) == 3 {
			v += float64(operands[1][at])
		}
		return v
	}
	g := gates{input: sigmoid(sum(0)), forget: sigmoid(sum(1)), cell: math.Tanh(sum(2)), output: sigmoid(sum(3))}
	if len(operands) == 3 {
		g.before = float64(operands[2][r*hidden+j])
	}
	g.state = g.forget*g.before + g.input*g.cell
	return g
}

// lstm: x (r c) -> h c.
func lstm[T gemm.Float](c *Call[T]) {
	h, state := c.Out[0], c.Out[1]
	rows, hidden := c.OutShapes[0][0], c.OutShapes[0][1]
	for r := range rows {
		for j := range hidden {
			g := gatesOf(c.In, hidden, r, j)
			if h != nil {
				h[r*hidden+j] = T(g.output * math.Tanh(g.state))
			}
			if state != nil {
				state[r*hidden+j] = T(g.state)
			}
		}
	}
}

// lstmGrad: x (r c) dh (dc) -> dx dc. The gates are computed again.
func lstmGrad[T gemm.Float](c *Call[T]) {
	n := graph.LSTMGradOperands(len(c.In))
	operands, grads := c.In[:n], c.In[n:]
	dx, dc := c.Out[0], c.Out[1]
	rows, hidden := c.OutShapes[1][0], c.OutShapes[1][1]
	for r := range rows {
		for j := range hidden {
			g, at := gatesOf(operands, hidden, r, j), r*hidden+j
			dh, y := float64(grads[0][at]), math.Tanh(g.state)
			d := dh * g.output * (1 - y*y) // of the new state
			if len(grads) == 2 {
				d += float64(grads[1][at])
			}
			if dc != nil {
				dc[at] = T(d * g.forget)
			}
			if dx == nil {
				continue
			}
			for gate, v := range [4]float64{
				sigmoidDX(g.input, d*g.cell), sigmoidDX(g.forget, d*g.before), tanhDX(g.cell, d*g.input),
				sigmoidDX(g.output, dh*y),
			} {
				dx[(4*r+gate)*hidden+j] = T(v)
			}
		}
	}
}
