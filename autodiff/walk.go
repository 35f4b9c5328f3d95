package autodiff

import (
	"fmt"
	"slices"

	"tensile/graph"
)

// Gradients that are not tensors.
const (
	absent graph.TensorID = -1 - iota // nothing depends on this content
	one                               // of the loss in itself
)

// walk is the state of one Backward.
type walk struct {
	b *graph.Builder
	g *graph.Graph

	base   map[graph.Version]graph.TensorID // the tensor that a content was made as; others with it are views
	maker  map[graph.Version]graph.OpID     // of the contents made by forward ops
	needed map[graph.Version]bool           // depends on a parameter
	sums   map[graph.Version]sum            // gradients of the contents, as far as they have arrived

	op graph.Op // being differentiated
}

// sum is a gradient of which this many contributions have arrived.
type sum struct {
	tensor graph.TensorID
	terms  int
	own    bool // its storage was made for this sum and nothing else reads it: more may be added in place
}

func newWalk(b *graph.Builder) *walk {
	w := &walk{
		b: b, g: b.Peek(),
		base:   map[graph.Version]graph.TensorID{},
		maker:  map[graph.Version]graph.OpID{},
		needed: map[graph.Version]bool{},
		sums:   map[graph.Version]sum{},
	}
	for _, t := range w.g.Tensors {
		v := w.g.Version(t.ID)
		if _, ok := w.base[v]; !ok {
			w.base[v] = t.ID
		}
		if w.g.Storages[t.Storage].Role == graph.Parameter && t.Version == 0 {
			w.needed[v] = true
		}
	}
	for _, op := range w.g.Ops {
		needed := slices.ContainsFunc(op.Inputs, w.wantsTensor)
		for _, v := range w.g.Writes(op.ID) {
			w.maker[v] = op.ID
			w.needed[v] = needed
		}
	}
	return w
}

func (w *walk) wantsTensor(t graph.TensorID) bool { return w.needed[w.g.Version(t)] }

// differentiate appends the backward ops of op if a gradient of one of its outputs has arrived.
func (w *walk) differentiate(op graph.Op) {
	w.op = op
	dy := make([]graph.TensorID, len(op.Outputs))
	for i, v := range w.g.Writes(op.ID) {
		dy[i] = absent
		if s, ok := w.sums[v]; ok {
			dy[i] = s.tensor
		}
	}
	if !slices.ContainsFunc(dy, func(d graph.TensorID) bool { return d != absent }) {
		return
	}
	rule, ok := rules[op.Kind]
	if !ok {
		w.fail("%s has no gradient", op.Kind)
		return
	}
	if slices.Contains(dy, one) && !slices.Contains(losses, op.Kind) && op.Kind != graph.Add {
		w.fail("a loss is made by one of %v, or is a sum of such losses, not made by %s", losses, op.Kind)
		return
	}
	w.b.SetLayer(op.Layer)
	w.b.SetForward(op.ID)
	rule(w, dy)
}

// wants reports whether the op has an input i that depends on a parameter.
func (w *walk) wants(i int) bool { return i < len(w.op.Inputs) && w.wantsTensor(w.op.Inputs[i]) }

// emit appends a backward op of the op and returns its first output.
func (w *walk) emit(suffix string, kind graph.Kind, attrs graph.Attrs, inputs ...graph.TensorID) graph.TensorID {
	return w.b.Op(w.op.Name+"."+suffix, kind, attrs, inputs...)[0]
}

// give adds d, shaped like the op's input i, to the gradient of the content that the input shows. Gradients of
// contents that depend on no parameter are forgotten.
func (w *walk) give(i int, d graph.TensorID) {
	if w.b.Err() != nil || !w.wants(i) {
		return
	}
	in := w.g.Tensors[w.op.Inputs[i]]
	v := w.g.Version(in.ID)
	base := w.g.Tensors[w.base[v]]
	if in.Bytes() != base.Bytes() {
		w.fail("input %s is a view of a part of %s (%d of %d bytes), which has no gradient",
			in.Name, base.Name, in.Bytes(), base.Bytes())
		return
	}
	if d != one && !slices.Equal(in.Shape, base.Shape) {
		d = w.b.View(base.Name+".grad", d, 0, base.Shape)
	}
	s, summed := w.sums[v]
	if !summed {
		w.sums[v] = sum{tensor: d, terms: 1}
		return
	}
	if s.tensor == one || d == one {
		w.fail("loss %s is used more than once", base.Name)
		return
	}
	s.terms++
	kind := graph.Add
	if s.own && w.g.Storages[base.Storage].Role == graph.Parameter {
		kind = graph.Accumulate // in place: a network unrolled over time has a term a step
	}
	s.own = true
	s.tensor = w.b.Op(fmt.Sprintf("%s.grad%d", base.Name, s.terms), kind, graph.Attrs{}, s.tensor, d)[0]
	w.sums[v] = s
}

func (w *walk) fail(format string, args ...any) {
	w.b.Fail(fmt.Errorf("gradient of op %s: %w", w.op.Name, fmt.Errorf(format, args...)))
}

// parameters returns the gradients that reached parameters.
func (w *walk) parameters() []Gradient {
	var grads []Gradient
	for _, s := range w.g.Storages {
		v := graph.Version{Storage: s.ID}
		if d, ok := w.sums[v]; ok && s.Role == graph.Parameter {
			grads = append(grads, Gradient{w.base[v], d.tensor})
		}
	}
	return grads
}
