package passes

import (
	"slices"

	"tensile/graph"
)

// forwardKinds are the kinds whose output may take the place of an operand: neither their gradients nor they themselves
// need it later. Dropout has a pass of its own.
var forwardKinds = []graph.Kind{graph.ReLU, graph.Sigmoid, graph.Tanh, graph.Add, graph.Mul, graph.Bias, graph.Softmax}

// activations lets the gradients of ReLUs read the output alone, so that the input need not live until then. It makes
// elementwise ops of the forward pass in place of an operand that nobody reads later.
//
//	conv --> x --> relu --> y        conv --> x.0 --> relu --> x.1
//	x, y, dy --> relu_dx --> dx      x.1, dy --> relu_y_dx --> dx
//
// The output is positive where the input is, and nowhere else: neither is where the other is -0 or NaN.
func activations(r *rewrite) {
	for i := range r.g.Ops {
		op := &r.g.Ops[i]
		if op.Kind != graph.ReLUDX {
			continue
		}
		op.Kind, op.Inputs = graph.ReLUYDX, slices.Clone(op.Inputs[1:])
		if op.Attrs.InPlace > 0 {
			op.Attrs.InPlace-- // of dy, which has moved
		}
		r.changed++
	}
	inPlace(r, func(op *graph.Op) bool {
		return op.Phase != graph.Backward && slices.Contains(forwardKinds, op.Kind)
	})
}
