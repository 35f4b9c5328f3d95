package autodiff

import "tensile/graph"

// losses are the kinds that make a loss, their first output, of predictions and of what was to be predicted.
var losses = []graph.Kind{graph.SoftmaxXent, graph.SigmoidXent, graph.MeanSquare}

// pairLoss is the rule of a loss whose gradient reads both of its inputs.
func pairLoss(dx graph.Kind) rule {
	return func(w *walk, dy []graph.TensorID) {
		if w.isLoss(dy) {
			w.give(0, w.emit("dx", dx, graph.Attrs{}, w.op.Inputs[0], w.op.Inputs[1]))
		}
	}
}

func softmaxXent(w *walk, dy []graph.TensorID) {
	if w.isLoss(dy) {
		w.give(0, w.emit("dx", graph.SoftmaxXentDX, graph.Attrs{}, w.op.Outputs[1], w.op.Inputs[1]))
	}
}

// isLoss reports whether the op's first output is the loss or a term of it, and nothing else of it has a gradient.
func (w *walk) isLoss(dy []graph.TensorID) bool {
	switch {
	case dy[0] != one || len(dy) > 1 && dy[1] != absent:
		w.fail("only its loss, and only as the loss or a term of it, has a gradient")
	case w.inputNeedsGradient(1):
		w.fail("labels %s depend on a parameter", w.g.Tensors[w.op.Inputs[1]].Name)
	default:
		return true
	}
	return false
}
