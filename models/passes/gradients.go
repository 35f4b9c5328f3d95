package passes

import (
	"slices"

	"tensile/graph"
)

// gradientKinds are the kinds whose dx may take the place of dy, and those that sum or scale gradients. Dropout has a
// pass of its own.
var gradientKinds = []graph.Kind{graph.Add, graph.Mul, graph.ReLUDX, graph.ReLUYDX, graph.GELUDX, graph.SigmoidDX,
	graph.TanhDX, graph.SoftmaxDX, graph.BatchNormGrad, graph.LayerNormGrad}

// gradients adds gradients up in place, and makes dx in place of a dy that nobody reads later.
//
//	a, b --> add --> c               a.0, b --> add --> a.1
//	y, dy --> relu_y_dx --> dx       y, dy.0 --> relu_y_dx --> dy.1
func gradients(r *rewrite) {
	inPlace(r, func(op *graph.Op) bool {
		return op.Phase == graph.Backward && slices.Contains(gradientKinds, op.Kind)
	})
}
