package passes

import (
	"slices"

	"tensile/graph"
)

// pooling keeps neither what pools read nor what they make for their gradients. Max-pooling notes where in each window
// the maximum stands, in a byte. The gradient of a mean needs only the extent of x.
//
//	x --> max_pool --> y                 x --> max_pool_indices --> y, indices
//	x, y, dy --> max_pool_dx --> dx      indices, dy --> max_pool_indices_dx --> dx
//
//	x, y, dy --> avg_pool_dx --> dx      dy --> avg_pool_dy_dx --> dx
func pooling(r *rewrite) {
	u := usesOf(r.g)
	for i := range r.g.Ops {
		dx := &r.g.Ops[i]
		switch dx.Kind {
		case graph.AvgPoolDX:
			dx.Kind = graph.AvgPoolDYDX
			r.redirect(dx, dx.Inputs[2])
			continue
		case graph.MaxPoolDX:
		default:
			continue
		}
		maker := u.maker(dx.Inputs[1])
		switch a := dx.Attrs; {
		case a.Kernel[0]*a.Kernel[1] > graph.NoMaximum:
			r.refuse(dx, "a window of %dx%d has more than %d elements", a.Kernel[0], a.Kernel[1], graph.NoMaximum)
		case maker == graph.NoOp || !r.pools(&r.g.Ops[maker], dx):
			r.refuse(dx, "%s was not pooled from %s", r.g.Tensors[dx.Inputs[1]].Name, r.g.Tensors[dx.Inputs[0]].Name)
		default:
			pool := &r.g.Ops[maker]
			if pool.Kind == graph.MaxPool {
				r.index(pool)
			}
			dx.Kind = graph.MaxPoolIndicesDX
			r.redirect(dx, pool.Outputs[1], dx.Inputs[2])
		}
	}
}

// redirect has a gradient read other inputs, and be told the extent of the x that it read first.
func (r *rewrite) redirect(dx *graph.Op, inputs ...graph.TensorID) {
	x := r.g.Tensors[dx.Inputs[0]].Shape
	dx.Inputs, dx.Attrs.Extent = inputs, [2]int{x[2], x[3]}
	r.changed++
}

// pools reports whether an op is the max-pooling that dx is the gradient of.
func (r *rewrite) pools(op, dx *graph.Op) bool {
	if op.Kind != graph.MaxPool && op.Kind != graph.MaxPoolIndices || op.Attrs != dx.Attrs {
		return false
	}
	x, of := r.g.Tensors[op.Inputs[0]], r.g.Tensors[dx.Inputs[0]]
	y, made := r.g.Tensors[op.Outputs[0]], r.g.Tensors[dx.Inputs[1]]
	same := func(a, b graph.Tensor) bool {
		return r.g.Version(a.ID) == r.g.Version(b.ID) && a.Offset == b.Offset && slices.Equal(a.Shape, b.Shape)
	}
	return same(x, of) && same(y, made)
}

// index has a max-pooling make indices.
func (r *rewrite) index(pool *graph.Op) {
	g := r.g
	y := g.Tensors[pool.Outputs[0]]
	s := graph.Storage{ID: graph.StorageID(len(g.Storages)), Name: pool.Name + ".indices", Role: graph.Activation,
		Bytes: graph.StorageBytes(y.Shape, graph.Uint8)}
	t := graph.Tensor{ID: graph.TensorID(len(g.Tensors)), Name: s.Name, Storage: s.ID, Shape: y.Shape,
		DType: graph.Uint8}
	g.Storages, g.Tensors = append(g.Storages, s), append(g.Tensors, t)
	pool.Kind, pool.Outputs = graph.MaxPoolIndices, append(pool.Outputs, t.ID)
}
