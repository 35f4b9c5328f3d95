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

	first    []int // per storage: its version 0 in contents; a version is as many further on
	contents []content

	op graph.Op // being differentiated
}

// content is what the walk knows of one version of a storage of the forward graph.
type content struct {
	base   graph.TensorID // the tensor that it was made as; others with it are views
	maker  graph.OpID     // NoOp: it is there before the first op
	needed bool           // it depends on a parameter, and a gradient goes through it
	stops  bool           // none goes through it
	sum    sum            // its gradient, as far as it has arrived
}

// sum is a gradient of which this many contributions have arrived, none at first.
type sum struct {
	tensor graph.TensorID
	terms  int
	own    bool // its storage was made for this sum and nothing else reads it: more may be added in place
}

func newWalk(b *graph.Builder, stops []graph.TensorID) *walk {
	w := &walk{b: b, g: b.Peek()}
	count := 0
	for _, last := range w.g.LastVersions() {
		w.first = append(w.first, count)
		count += last + 1
	}
	w.contents = make([]content, count)
	for i := range w.contents {
		w.contents[i] = content{base: absent, maker: graph.NoOp}
	}
	for i := range w.g.Tensors {
		t := &w.g.Tensors[i]
		c := w.contentOf(t.ID)
		if c.base == absent {
			c.base = t.ID
		}
		if w.g.Storages[t.Storage].Role == graph.Parameter && t.Version == 0 {
			c.needed = true
		}
	}
	for _, t := range stops {
		w.contentOf(t).stops = true
	}
	for i := range w.g.Ops {
		op := &w.g.Ops[i]
		needed := slices.ContainsFunc(op.Inputs, w.needsGradient)
		for _, t := range op.Outputs {
			c := w.contentOf(t)
			c.maker, c.needed = op.ID, needed && !c.stops
		}
	}
	return w
}

// contentOf returns the content that a tensor of the forward graph shows.
func (w *walk) contentOf(t graph.TensorID) *content {
	v := w.g.Version(t)
	return &w.contents[w.first[v.Storage]+v.Number]
}

func (w *walk) needsGradient(t graph.TensorID) bool { return w.contentOf(t).needed }

// differentiate appends the backward ops of op if a gradient of one of its outputs has arrived.
func (w *walk) differentiate(op graph.Op) {
	w.op = op
	dy := make([]graph.TensorID, len(op.Outputs))
	for i, t := range op.Outputs {
		dy[i] = absent
		if s := w.contentOf(t).sum; s.terms > 0 {
			dy[i] = s.tensor
		}
	}
	if !slices.ContainsFunc(dy, func(d graph.TensorID) bool { return d != absent }) {
		return
	}
	rule, ok := rules[op.Kind]
	if !ok {
		w.fail("%s has no gradient: %s", op.Kind, without[op.Kind])
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

// inputNeedsGradient reports whether the op has an input i that depends on a parameter.
func (w *walk) inputNeedsGradient(i int) bool {
	return i < len(w.op.Inputs) && w.needsGradient(w.op.Inputs[i])
}

// emit appends a backward op of the op and returns its first output.
func (w *walk) emit(suffix string, kind graph.Kind, attrs graph.Attrs, inputs ...graph.TensorID) graph.TensorID {
	return w.b.Op(w.op.Name+"."+suffix, kind, attrs, inputs...)[0]
}

// give adds d, shaped like the op's input i, to the gradient of the content that the input shows. Gradients of
// contents that depend on no parameter are forgotten.
func (w *walk) give(i int, d graph.TensorID) {
	if w.b.Err() != nil || !w.inputNeedsGradient(i) {
		return
	}
	in := w.g.Tensors[w.op.Inputs[i]]
	c := w.contentOf(in.ID)
	base := w.g.Tensors[c.base]
	if in.Bytes() != base.Bytes() {
		w.fail("input %s is a view of a part of %s (%d of %d bytes), which has no gradient",
			in.Name, base.Name, in.Bytes(), base.Bytes())
		return
	}
	if d != one && !slices.Equal(in.Shape, base.Shape) {
		d = w.b.View(base.Name+".grad", d, 0, base.Shape)
	}
	s := &c.sum
	if s.terms == 0 {
		*s = sum{tensor: d, terms: 1}
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
}

func (w *walk) fail(format string, args ...any) {
	w.b.Fail(fmt.Errorf("gradient of op %s: %w", w.op.Name, fmt.Errorf(format, args...)))
}

// parameters returns the gradients that reached parameters.
func (w *walk) parameters() []Gradient {
	var grads []Gradient
	for s, first := range w.first {
		if c := &w.contents[first]; c.sum.terms > 0 && w.g.Storages[s].Role == graph.Parameter {
			grads = append(grads, Gradient{c.base, c.sum.tensor})
		}
	}
	return grads
}
