package autodiff

import "tensile/graph"

// A rule appends the backward ops of the walk's op, given the gradients of its outputs (at least one is not absent),
// and gives each input its gradient.
type rule func(w *walk, dy []graph.TensorID)

// rules holds the kinds that have a gradient; without holds the others.
var rules = map[graph.Kind]rule{
	graph.Conv2D:    convolution,
	graph.Conv2DDX:  transposedConvolution,
	graph.Linear:    linear,
	graph.ReLU:      fromXAndY(graph.ReLUDX),
	graph.ReLUYDX:   keep,
	graph.MaxPool:   fromXAndY(graph.MaxPoolDX),
	graph.AvgPool:   fromXAndY(graph.AvgPoolDX),
	graph.Pad:       pad,
	graph.LRN:       fromXAndY(graph.LRNDX),
	graph.BatchNorm: batchNorm,
	graph.Add:       add,
	graph.Mul:       mul,
	graph.Concat:    concat,
	graph.Slice:     slice,
	graph.SliceDX:   sliceDX,
	graph.Dropout:   dropout,

	graph.Affine:  affine,
	graph.Power:   power,
	graph.Exp:     exponential,
	graph.Log:     logarithm,
	graph.Erf:     errorFunction,
	graph.Expand:  expand,
	graph.SumOver: sumOver,

	graph.Embedding:      embedding,
	graph.Bias:           bias,
	graph.LayerNorm:      layerNorm,
	graph.GELU:           fromX(graph.GELUDX),
	graph.Sigmoid:        fromY(graph.SigmoidDX),
	graph.Tanh:           fromY(graph.TanhDX),
	graph.Blend:          fromAll(graph.BlendGrad),
	graph.MatMul:         matmul,
	graph.Transpose:      transpose,
	graph.Softmax:        fromY(graph.SoftmaxDX),
	graph.AdditiveScores: fromAll(graph.AdditiveScoresGrad),
	graph.LSTM:           lstm,

	graph.SoftmaxXent: softmaxXent,
	graph.SigmoidXent: pairLoss(graph.SigmoidXentDX),
	graph.MeanSquare:  pairLoss(graph.MeanSquareDX),
}

func convolution(w *walk, dy []graph.TensorID) {
	x, weight, attrs := w.op.Inputs[0], w.op.Inputs[1], w.op.Attrs
	weights(w, graph.Conv2DDW, attrs, dy[0])
	if w.inputNeedsGradient(0) {
		shape := w.b.Shape(x)
		attrs.Extent = [2]int{shape[2], shape[3]}
		w.give(0, w.emit("dx", graph.Conv2DDX, attrs, dy[0], weight))
	}
}

// transposedConvolution is the rule of what is a gradient of a convolution elsewhere, and a forward op of networks that
// make images larger.
func transposedConvolution(w *walk, dy []graph.TensorID) {
	attrs := w.op.Attrs
	attrs.Extent = [2]int{}
	if w.inputNeedsGradient(0) {
		w.give(0, w.emit("dx", graph.Conv2D, attrs, dy[0], w.op.Inputs[1]))
	}
	if w.inputNeedsGradient(1) {
		w.give(1, w.emit("dw", graph.Conv2DDW, attrs, dy[0], w.op.Inputs[0]))
	}
}

func linear(w *walk, dy []graph.TensorID) {
	weights(w, graph.LinearDW, graph.Attrs{}, dy[0])
	if w.inputNeedsGradient(0) {
		w.give(0, w.emit("dx", graph.LinearDX, graph.Attrs{}, dy[0], w.op.Inputs[1]))
	}
}

// weights makes the gradients of a weight (input 1) and a bias (input 2, if there is one).
func weights(w *walk, dw graph.Kind, attrs graph.Attrs, dy graph.TensorID) {
	if w.inputNeedsGradient(1) {
		w.give(1, w.emit("dw", dw, attrs, w.op.Inputs[0], dy))
	}
	if w.inputNeedsGradient(2) {
		w.give(2, w.emit("db", graph.BiasDB, graph.Attrs{}, dy))
	}
}

// fromXAndY is the rule of a kind whose gradient reads x, y and dy.
func fromXAndY(dx graph.Kind) rule {
	return func(w *walk, dy []graph.TensorID) {
		w.give(0, w.emit("dx", dx, w.op.Attrs, w.op.Inputs[0], w.op.Outputs[0], dy[0]))
	}
}

// batchNorm makes all three gradients at once. They hold only if the statistics are those of this very x.
func batchNorm(w *walk, dy []graph.TensorID) {
	x, mean, variance, gamma := w.op.Inputs[0], w.op.Inputs[1], w.op.Inputs[2], w.op.Inputs[3]
	id := w.contentOf(mean).maker
	if id == graph.NoOp || w.g.Ops[id].Kind != graph.BatchNormStats ||
		w.g.Version(w.g.Ops[id].Inputs[0]) != w.g.Version(x) ||
		w.g.Ops[id].Outputs[0] != mean || w.g.Ops[id].Outputs[1] != variance {
		w.fail("mean and variance must be what %s makes of %s", graph.BatchNormStats, w.g.Tensors[x].Name)
		return
	}
	attrs := graph.Attrs{Epsilon: w.op.Attrs.Epsilon}
	d := w.b.Op(w.op.Name+".grad", graph.BatchNormGrad, attrs, x, mean, variance, gamma, dy[0])
	w.give(3, d[1])
	w.give(4, d[2])
	w.give(0, d[0])
}

// add passes the gradient on as it is: no op, and no copy.
func add(w *walk, dy []graph.TensorID) {
	w.give(0, dy[0])
	w.give(1, dy[0])
}

func mul(w *walk, dy []graph.TensorID) {
	if w.inputNeedsGradient(0) {
		w.give(0, w.emit("da", graph.Mul, graph.Attrs{}, dy[0], w.op.Inputs[1]))
	}
	if w.inputNeedsGradient(1) {
		w.give(1, w.emit("db", graph.Mul, graph.Attrs{}, dy[0], w.op.Inputs[0]))
	}
}

// dropout makes the forward op's mask again from the same key and rate.
func dropout(w *walk, dy []graph.TensorID) {
	attrs := graph.Attrs{Rate: w.op.Attrs.Rate, Key: w.op.Attrs.Key}
	w.give(0, w.emit("dx", graph.DropoutDX, attrs, dy[0]))
}
