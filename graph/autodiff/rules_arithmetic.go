package autodiff

import (
	"math"

	"tensile/graph"
)

// The gradients of arithmetic are made of the same arithmetic.

func affine(w *walk, dy []graph.TensorID) {
	w.give(0, w.emit("dx", graph.Affine, graph.Attrs{Factor: w.op.Attrs.Factor}, dy[0]))
}

// keep: of what was kept, the same is; nothing of what said so.
func keep(w *walk, dy []graph.TensorID) {
	if w.inputNeedsGradient(1) {
		w.give(1, w.emit("dx", graph.ReLUYDX, graph.Attrs{}, w.op.Inputs[0], dy[0]))
	}
}

// power: dx = dy * e*x^(e-1).
func power(w *walk, dy []graph.TensorID) {
	e := w.op.Attrs.Exponent
	slope := w.emit("slope", graph.Power, graph.Attrs{Exponent: e - 1}, w.op.Inputs[0])
	slope = w.emit("slope.scaled", graph.Affine, graph.Attrs{Factor: e}, slope)
	w.give(0, w.emit("dx", graph.Mul, graph.Attrs{}, dy[0], slope))
}

// exponential: dx = dy * y.
func exponential(w *walk, dy []graph.TensorID) {
	w.give(0, w.emit("dx", graph.Mul, graph.Attrs{}, dy[0], w.op.Outputs[0]))
}

// logarithm: dx = dy / x.
func logarithm(w *walk, dy []graph.TensorID) {
	slope := w.emit("slope", graph.Power, graph.Attrs{Exponent: -1}, w.op.Inputs[0])
	w.give(0, w.emit("dx", graph.Mul, graph.Attrs{}, dy[0], slope))
}

// errorFunction: dx = dy * 2/sqrt(pi) * exp(-x*x).
func errorFunction(w *walk, dy []graph.TensorID) {
	x := w.op.Inputs[0]
	square := w.emit("square", graph.Mul, graph.Attrs{}, x, x)
	density := w.emit("density", graph.Exp, graph.Attrs{}, w.emit("negative", graph.Affine, graph.Attrs{Factor: -1},
		square))
	slope := w.emit("slope", graph.Affine, graph.Attrs{Factor: 2 / math.Sqrt(math.Pi)}, density)
	w.give(0, w.emit("dx", graph.Mul, graph.Attrs{}, dy[0], slope))
}

func expand(w *walk, dy []graph.TensorID) {
	w.give(0, w.emit("dx", graph.SumOver, graph.Attrs{}, dy[0]))
}

func sumOver(w *walk, dy []graph.TensorID) {
	n := w.b.Shape(w.op.Inputs[0])[1]
	w.give(0, w.emit("dx", graph.Expand, graph.Attrs{Extent: [2]int{n}}, dy[0]))
}
