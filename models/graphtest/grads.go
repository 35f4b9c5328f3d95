package graphtest

import "tensile/graph"

func lossGrad(m *maker) {
	if p, ok := m.choose(m.losses, func(t graph.TensorID) bool { return m.current(t) }); ok {
		m.op(graph.SoftmaxXentDX, graph.Attrs{}, m.bound(p)+1, p, m.labels)
	}
}

func reluGrad(m *maker) {
	x := m.pickTensor()
	y, ok := m.pickShaped(m.Shape(x), wild)
	if !ok {
		return
	}
	if dy, ok := m.pickShaped(m.Shape(x), wild); ok {
		m.op(graph.ReLUDX, graph.Attrs{}, m.bound(dy), x, y, dy)
	}
}

func poolGrad(m *maker) {
	r, ok := m.recent(m.pools)
	if !ok {
		return
	}
	op := m.Peek().Ops[r.op]
	kind := graph.MaxPoolDX
	if op.Kind == graph.AvgPool {
		kind = graph.AvgPoolDX
	}
	if dy, ok := m.pickShaped(m.Shape(r.tensors[1]), wild); ok {
		m.SetForward(r.op)
		m.op(kind, op.Attrs, 4*m.bound(dy), r.tensors[0], r.tensors[1], dy)
		m.SetForward(graph.NoOp)
	}
}

func normGrad(m *maker) {
	r, ok := m.recent(m.norms)
	if !ok || m.bound(r.tensors[0]) > tame {
		return
	}
	if dy, ok := m.pickShaped(m.Shape(r.tensors[0]), tame); ok {
		m.SetForward(r.op)
		m.op(graph.BatchNormGrad, graph.Attrs{Epsilon: 1e-5}, 1e5*weight*(m.bound(dy)+1),
			append(r.tensors[:4:4], dy)...)
		m.SetForward(graph.NoOp)
	}
}

func weightGrad(m *maker) {
	x, ok := m.matrix()
	if !ok {
		return
	}
	if dy, ok := m.pickShaped(graph.Shape{2, 2 + m.rng.IntN(3)}, wild); ok {
		m.op(graph.LinearDW, graph.Attrs{}, 2*m.bound(x)*m.bound(dy), x, dy)
	}
}

func inputGrad(m *maker) {
	out := 2 + m.rng.IntN(3)
	if dy, ok := m.pickShaped(graph.Shape{2, out}, wild); ok {
		m.op(graph.LinearDX, graph.Attrs{}, weight*float64(out)*m.bound(dy), dy, m.parameter(out, 8))
	}
}

func biasGrad(m *maker) {
	dy := m.pickTensor()
	if s := m.Shape(dy); len(s) > 1 {
		m.op(graph.BiasDB, graph.Attrs{}, float64(s.Elements())*m.bound(dy), dy)
	}
}

// convGrad appends the gradient of a convolution by its weights or by its input.
func convGrad(m *maker) {
	a := graph.Attrs{Kernel: [2]int{3, 3}, Stride: [2]int{1, 1}, Pad: [2]int{1, 1}}
	dy, ok := m.pickShaped(graph.Shape{1, 2, 4, 4}, wild)
	if !ok {
		return
	}
	if m.rng.IntN(2) == 0 {
		a.Extent = [2]int{4, 4}
		m.op(graph.Conv2DDX, a, 18*weight*m.bound(dy), dy, m.parameter(2, 2, 3, 3))
		return
	}
	if x, ok := m.pickShaped(graph.Shape{1, 2, 4, 4}, wild); ok {
		m.op(graph.Conv2DDW, a, 16*m.bound(x)*m.bound(dy), x, dy)
	}
}

// target returns the last version of a parameter and a gradient for it.
func (m *maker) target() (w, dw graph.TensorID, ok bool) {
	if len(m.params) == 0 {
		return 0, 0, false
	}
	w = m.newest(m.params[m.rng.IntN(len(m.params))])
	dw, ok = m.pickShaped(m.Shape(w), tame, w)
	return w, dw, ok
}

func sgd(m *maker) {
	if w, dw, ok := m.target(); ok {
		m.op(graph.SGD, graph.Attrs{LearningRate: 0.1 / (1 + m.bound(dw))}, weight, w, dw)
	}
}

func momentum(m *maker) {
	if w, dw, ok := m.target(); ok {
		a := graph.Attrs{LearningRate: 0.01 / tame, Momentum: 0.9}
		m.op(graph.Momentum, a, weight, w, dw, m.state(m.Shape(w), dw))
	}
}

func adam(m *maker) {
	if w, dw, ok := m.target(); ok {
		a := graph.Attrs{LearningRate: 0.01, Beta1: 0.9, Beta2: 0.99, Epsilon: 1e-3}
		first := m.state(m.Shape(w), dw)
		second := m.source("v", graph.State, &m.second, moment, m.Shape(w), dw)
		m.op(graph.Adam, a, weight, w, dw, first, second)
	}
}

// decay scales a persistent storage, in place.
func decay(m *maker) {
	if a, ok := m.mutable(true); ok {
		m.op(graph.Scale, graph.Attrs{Factor: 0.75}, m.bound(a), a)
	}
}

// trained appends a gradient, mostly of one product, and the update by it of a parameter.
func trained(m *maker) {
	x, ok := m.matrix()
	if !ok {
		return
	}
	rows := 2 + m.rng.IntN(5)
	dy, ok := m.pickShaped(graph.Shape{2, rows}, tame)
	bound := 2 * m.bound(x) * m.bound(dy)
	if !ok || bound > tame/2 {
		return
	}
	product := func() graph.TensorID { return m.op(graph.LinearDW, graph.Attrs{}, bound, x, dy)[0] }
	dw := product()
	if m.rng.IntN(3) == 0 {
		kind := []graph.Kind{graph.Add, graph.Accumulate}[m.rng.IntN(2)]
		dw = m.op(kind, graph.Attrs{}, 2*bound, dw, product())[0]
	}
	w := m.parameter(rows, m.Shape(x)[1])
	switch rate := 0.1 / (1 + m.bound(dw)); m.rng.IntN(3) {
	case 0:
		m.op(graph.SGD, graph.Attrs{LearningRate: rate}, weight, w, dw)
	case 1:
		a := graph.Attrs{LearningRate: 0.01 / tame, Momentum: 0.9}
		m.op(graph.Momentum, a, weight, w, dw, m.state(m.Shape(w), dw))
	default:
		a := graph.Attrs{LearningRate: 0.01, Beta1: 0.9, Beta2: 0.99, Epsilon: 1e-3}
		first := m.state(m.Shape(w), dw)
		second := m.source("v", graph.State, &m.second, moment, m.Shape(w), dw)
		m.op(graph.Adam, a, weight, w, dw, first, second)
	}
}
