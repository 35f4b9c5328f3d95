package passes

import "tensile/graph"

// dropout makes dropout and its gradient in place: the mask is made again from its key, and needs neither x nor y.
func dropout(r *rewrite) {
	inPlace(r, func(op *graph.Op) bool { return op.Kind == graph.Dropout || op.Kind == graph.DropoutDX })
}
