package autodiff

import "tensile/graph"

// embedding gives the table a gradient of its own size, however few of its rows were read.
func embedding(w *walk, dy []graph.TensorID) {
	attrs := graph.Attrs{Extent: [2]int{w.b.Shape(w.op.Inputs[0])[0]}}
	w.give(0, w.emit("dw", graph.EmbeddingDW, attrs, w.op.Inputs[1], dy[0]))
}

// bias passes the gradient on to x as it is.
func bias(w *walk, dy []graph.TensorID) {
	if w.inputNeedsGradient(1) {
		w.give(1, w.emit("db", graph.BiasDB, graph.Attrs{}, dy[0]))
	}
	w.give(0, dy[0])
}

// layerNorm makes all three gradients at once.
func layerNorm(w *walk, dy []graph.TensorID) {
	if dy[1] != absent || dy[2] != absent {
		w.fail("its mean and scale have no gradient")
		return
	}
	mean, scale := w.op.Outputs[1], w.op.Outputs[2]
	d := w.b.Op(w.op.Name+".grad", graph.LayerNormGrad, graph.Attrs{}, w.op.Inputs[0], mean, scale, w.op.Inputs[1],
		dy[0])
	w.give(1, d[1])
	w.give(2, d[2])
	w.give(0, d[0])
}

// fromX is the rule of a kind whose gradient reads x and dy.
func fromX(dx graph.Kind) rule {
	return func(w *walk, dy []graph.TensorID) {
		w.give(0, w.emit("dx", dx, w.op.Attrs, w.op.Inputs[0], dy[0]))
	}
}

// fromY is the rule of a kind whose gradient reads y and dy, and of attributes no more than Factor.
func fromY(dx graph.Kind) rule {
	return func(w *walk, dy []graph.TensorID) {
		w.give(0, w.emit("dx", dx, graph.Attrs{Factor: w.op.Attrs.Factor}, w.op.Outputs[0], dy[0]))
	}
}

// fromAll is the rule of a kind whose gradient reads all of its inputs and dy, and makes a gradient for each.
func fromAll(grad graph.Kind) rule {
	return func(w *walk, dy []graph.TensorID) {
		inputs := append(append([]graph.TensorID{}, w.op.Inputs...), dy[0])
		for i, d := range w.b.Op(w.op.Name+".grad", grad, graph.Attrs{}, inputs...) {
			w.give(i, d)
		}
	}
}

// matmul: with y = a*b, da = dy*b' and db = a'*dy, and the transpose of that for an operand that is stored as its
// transpose.
func matmul(w *walk, dy []graph.TensorID) {
	a, b, turned := w.op.Inputs[0], w.op.Inputs[1], w.op.Attrs
	if w.inputNeedsGradient(0) {
		if turned.TransposeA {
			w.give(0, w.emit("da", graph.MatMul, graph.Attrs{TransposeA: turned.TransposeB, TransposeB: true}, b,
				dy[0]))
		} else {
			w.give(0, w.emit("da", graph.MatMul, graph.Attrs{TransposeB: !turned.TransposeB}, dy[0], b))
		}
	}
	if w.inputNeedsGradient(1) {
		if turned.TransposeB {
			w.give(1, w.emit("db", graph.MatMul, graph.Attrs{TransposeA: true, TransposeB: turned.TransposeA}, dy[0],
				a))
		} else {
			w.give(1, w.emit("db", graph.MatMul, graph.Attrs{TransposeA: !turned.TransposeA}, a, dy[0]))
		}
	}
}

func transpose(w *walk, dy []graph.TensorID) {
	w.give(0, w.emit("dx", graph.Transpose, graph.Attrs{}, dy[0]))
}

// lstm: the two parts of the gates have the same gradient. The last step's memory is read by nothing and has none.
func lstm(w *walk, dy []graph.TensorID) {
	if dy[0] == absent {
		w.fail("the loss depends on its memory but not on its h")
		return
	}
	inputs := append(append([]graph.TensorID{}, w.op.Inputs...), dy[0])
	if dy[1] != absent {
		inputs = append(inputs, dy[1])
	}
	d := w.b.Op(w.op.Name+".grad", graph.LSTMGrad, graph.Attrs{}, inputs...)
	w.give(0, d[0])
	w.give(1, d[0])
	w.give(2, d[1])
}
