package autodiff

import (
	"fmt"
	"slices"

	"tensile/graph"
)

// Gradient pairs a parameter with the gradient of the loss in it. Both tensors have the same shape.
type Gradient struct {
	Parameter, Gradient graph.TensorID
}

// Backward appends the ops that make the gradient of the loss in every parameter it depends on, and returns those in
// the order of the parameters' storages. The loss is the first output of an op that makes one (softmax_xent,
// sigmoid_xent, mean_square), or a sum of several; any other op on the way to a parameter that has no gradient, a view
// of a part of a tensor for one, is an error that names it. Stops are outputs of ops that are taken as given: no
// gradient goes through them.
func Backward(b *graph.Builder, loss graph.TensorID, stops ...graph.TensorID) ([]Gradient, error) {
	if err := b.Err(); err != nil {
		return nil, err
	}
	w := newWalk(b, stops)
	if !w.needsGradient(loss) {
		return nil, fmt.Errorf("loss %s depends on no parameter", w.g.Tensors[loss].Name)
	}
	w.contentOf(loss).sum = sum{tensor: one, terms: 1}
	b.SetPhase(graph.Backward)
	for _, op := range slices.Backward(w.g.Ops) {
		w.differentiate(op)
		if err := b.Err(); err != nil {
			return nil, err
		}
	}
	b.SetForward(graph.NoOp)
	return w.parameters(), nil
}
