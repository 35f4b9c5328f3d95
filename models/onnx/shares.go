package onnx

import (
	"fmt"
	"slices"

	"tensile/graph"
)

// Softmax cross-entropy takes scores and makes the softmax itself. Where a model ends with a softmax, the loss takes
// what goes into that. A softmax is a Softmax or LogSoftmax, or one that is written as exponentials and their sum, and
// is found behind nodes that hand on its values as they are or in another shape.

// shares is what is known of a value that came by a softmax: it is over n elements that lie inner elements apart.
type shares struct {
	n, inner int
	log      bool       // the logarithm of one
	cuts     []identity // that make the scores of it
}

// identity is a node that hands on another value instead of what it makes.
type identity struct {
	node *Node
	of   string
}

// exponent is what is known of a value that is the exponential of another.
type exponent struct {
	of      string
	shifted *shift // how that came about; nil: otherwise
}

// shift is what is known of a value that has the largest elements of another taken off.
type shift struct {
	of      string
	largest *total
}

// total is what is known of a sum, a largest element or a logarithm of a sum of exponentials over n elements that lie
// inner elements apart.
type total struct {
	op       string // of the node that made it
	of       *value
	n, inner int
	inverse  bool // one over it
}

// derivation is how a value came about, as far as a softmax may come of it. nil and "": otherwise.
type derivation struct {
	shares   *shares
	exponent *exponent
	total    *total
	shifted  *shift
}

// derive records how the first output of the node came about.
func (c *call) derive() {
	out := c.values[c.node.Outputs[0]]
	in := func(k int) *value {
		if v, err := c.value(k); err == nil && v != nil {
			return v
		}
		return &value{tensor: missing}
	}
	x := in(0)
	if out == nil || out == x || out.tensor == missing || out.known != nil {
		return
	}
	switch c.node.Op {
	case "Softmax", "LogSoftmax":
		axis, _ := c.axis("axis", c.softmaxAxis(), len(x.shape)) // which has been checked
		s := &shares{n: x.shape[axis], inner: x.shape[axis+1:].Elements(), log: c.node.Op == "LogSoftmax",
			cuts: []identity{{c.node, c.node.Inputs[0]}}}
		if c.model.Version() < 13 {
			s.n, s.inner = x.shape[axis:].Elements(), 1
		}
		out.shares = s
	case "Exp":
		if s := x.shares; s != nil && s.log {
			out.shares = &shares{n: s.n, inner: s.inner,
				cuts: append(slices.Clone(s.cuts), identity{c.node, c.node.Inputs[0]})}
			return
		}
		out.exponent = &exponent{c.node.Inputs[0], x.shifted}
	case "ReduceSum", "ReduceMax", "ReduceLogSumExp":
		axes, given, err := c.axes(1)
		if err != nil || !given || len(axes) != 1 {
			return
		}
		if axis, err := place(axes[0], len(x.shape)); err == nil {
			out.total = &total{op: c.node.Op, of: x, n: x.shape[axis], inner: x.shape[axis+1:].Elements()}
		}
	case "Reciprocal":
		if t := x.total; t != nil && !t.inverse {
			inverse := *t
			inverse.inverse = true
			out.total = &inverse
		}
	case "Sub":
		if t := in(1).total; t.isBroadcastTo(x, in(1).shape) && t.of == x && !t.inverse {
			switch t.op {
			case "ReduceMax":
				out.shifted = &shift{c.node.Inputs[0], t}
			case "ReduceLogSumExp":
				out.shares = &shares{n: t.n, inner: t.inner, log: true, cuts: []identity{{c.node, c.node.Inputs[0]}}}
			}
		}
	case "Div":
		c.divided(out, x, in(1), false)
	case "Mul":
		c.divided(out, x, in(1), true)
		c.divided(out, in(1), x, true)
	case "Reshape", "Flatten", "Squeeze", "Unsqueeze":
		out.derivation = derivation{shares: x.shares, total: x.total}
	case "Transpose":
		out.derivation = derivation{}
		if perm, err := c.permutation(len(x.shape)); err == nil {
			out.shares = x.shares.permuted(x.shape, perm)
		}
	default:
		if out.tensor == x.tensor && slices.Equal(out.shape, x.shape) { // it hands on what it takes
			out.derivation = x.derivation
		}
	}
}

// divided records that a value is e divided by a sum, or times one over that.
func (c *call) divided(out, e, sum *value, inverse bool) {
	t := sum.total
	if e.exponent != nil && t.isBroadcastTo(e, sum.shape) && t.op == "ReduceSum" && t.of.exponent == e.exponent &&
		t.inverse == inverse && len(out.shape) == len(e.shape) {
		of := e.exponent.of
		if s := e.exponent.shifted; s != nil && s.largest.n == t.n && s.largest.inner == t.inner {
			of = s.of // all terms of a sum have the same taken off, which is of no account
		}
		out.shares = &shares{n: t.n, inner: t.inner, cuts: []identity{{c.node, of}}}
	}
}

// isBroadcastTo reports whether a total of a shape is broadcast to what it was made of, along what it was made over.
func (t *total) isBroadcastTo(x *value, s graph.Shape) bool {
	if t == nil || !slices.Equal(t.of.shape, x.shape) {
		return false
	}
	d := dimension(x.shape, t.n, t.inner)
	if d < 0 {
		return false
	}
	want := slices.Clone(x.shape)
	want[d] = 1
	return slices.Equal(want, s)
}

// dimension is that of n > 1 elements which lie inner elements apart, -1 if there is none.
func dimension(s graph.Shape, n, inner int) int {
	for d := range s {
		if n > 1 && s[d] == n && s[d+1:].Elements() == inner {
			return d
		}
	}
	return -1
}

// permuted are shares of a shape whose dimensions are exchanged.
func (s *shares) permuted(x graph.Shape, perm []int) *shares {
	if s == nil {
		return nil
	}
	d := dimension(x, s.n, s.inner)
	if d < 0 {
		return nil
	}
	moved := *s
	moved.inner = 1
	for _, p := range perm[slices.Index(perm, d)+1:] {
		moved.inner *= x[p]
	}
	return &moved
}

// classes is what the loss takes for classes in an output of a shape: n elements that lie inner elements apart.
func classes(s graph.Shape) (n, inner int) {
	switch {
	case len(s) == 4:
		return s[1], s[2] * s[3]
	case len(s) == 0:
		return 1, 1
	}
	return s[len(s)-1], 1
}

// mayEnd reports whether the output of a model that is trained may come of a softmax, which takes an import to know.
func (m *Model) mayEnd() bool {
	maker := make(map[string]*Node)
	for k := range m.Graph.Nodes {
		for _, out := range m.Graph.Nodes[k].Outputs {
			maker[out] = &m.Graph.Nodes[k]
		}
	}
	for n := maker[m.Graph.Outputs[0].Name]; n != nil && len(n.Inputs) > 0; n = maker[n.Inputs[0]] {
		switch n.Op {
		case "Softmax", "LogSoftmax", "Div", "Mul", "Exp", "Sub":
			return true
		case "Identity", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Transpose", "Cast", "Dropout", "Concat",
			"Slice", "Expand", "Tile", "Sum", "Mean": // which may do nothing
		default:
			return false
		}
	}
	return false
}

// scores returns the model with the softmax left out that its output comes of, if it does and the softmax is over
// what the loss takes for classes; else the model as it is, and a line that says so of a softmax over anything else.
func (m *Model) scores(name string, o Options) (_ *Model, line string) {
	if !m.mayEnd() {
		return m, ""
	}
	net, err := Import(m, name, o)
	if err != nil {
		return m, "" // importing it again says why
	}
	out := m.Graph.Outputs[0].Name
	v := net.importer.values[out]
	if v.shares == nil || net.importer.loss {
		return m, ""
	}
	if n, inner := classes(v.shape); v.shares.n != n || v.shares.inner != inner {
		return m, fmt.Sprintf("output %.80q of shape %v comes of a softmax, but not over the %d classes that the loss "+
			"takes there, and makes another one of it: export scores [N,C], [N,S,C] or [N,C,H,W] without it", out,
			v.shape, n)
	}
	bare := *m
	bare.Graph.Nodes = slices.Clone(m.Graph.Nodes)
	for _, cut := range v.shares.cuts {
		for k := range m.Graph.Nodes {
			if n := &bare.Graph.Nodes[k]; &m.Graph.Nodes[k] == cut.node {
				*n = Node{Name: n.Name, Op: "Identity", Inputs: []string{cut.of}, Outputs: n.Outputs[:1],
					index: n.index}
			}
		}
	}
	return bare.forTraining(), ""
}
