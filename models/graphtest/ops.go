package graphtest

import "tensile/graph"

// tables holds, per phase, what may be appended. An entry that finds no operands appends nothing.
var tables = [3][]func(*maker){
	{relu, join, join, linear, linear, conv, pool, norm, dropout, scale, accumulate, loss},
	{reluGrad, poolGrad, normGrad, weightGrad, biasGrad, inputGrad, convGrad, lossGrad, join, accumulate, scale},
	{sgd, sgd, momentum, adam, decay, running},
}

func relu(m *maker) {
	x := m.pickTensor()
	m.op(graph.ReLU, graph.Attrs{}, m.bound(x), x)
}

func join(m *maker) {
	a := m.pickTensor()
	b, ok := m.pickShaped(m.Shape(a), wild)
	switch {
	case !ok:
	case m.rng.IntN(2) == 0:
		m.op(graph.Add, graph.Attrs{}, m.bound(a)+m.bound(b), a, b)
	default:
		m.op(graph.Mul, graph.Attrs{}, m.bound(a)*m.bound(b), a, b)
	}
}

func linear(m *maker) {
	x, ok := m.matrix()
	if !ok {
		return
	}
	in, out := m.Shape(x)[1], 2+m.rng.IntN(3)
	operands := []graph.TensorID{x, m.parameter(out, in)}
	if m.rng.IntN(2) == 0 {
		operands = append(operands, m.parameter(out))
	}
	m.op(graph.Linear, graph.Attrs{}, weight*(float64(in)*m.bound(x)+1), operands...)
}

func conv(m *maker) {
	x, ok := m.image(wild)
	if !ok {
		return
	}
	k := 1 + 2*m.rng.IntN(2)
	c := m.Shape(x)[1]
	if k == 3 && c*9*2 > maxElements || m.Shape(x)[2] < 4 {
		k = 1
	}
	a := graph.Attrs{Kernel: [2]int{k, k}, Stride: [2]int{1, 1}, Pad: [2]int{k / 2, k / 2}}
	w := m.parameter(2, c, k, k)
	operands := []graph.TensorID{x, w}
	if m.rng.IntN(3) == 0 {
		operands = append(operands, m.parameter(2))
	}
	m.op(graph.Conv2D, a, weight*(float64(c*k*k)*m.bound(x)+1), operands...)
}

func pool(m *maker) {
	x, ok := m.image(wild)
	if !ok {
		return
	}
	a := graph.Attrs{Kernel: [2]int{2, 2}, Stride: [2]int{2, 2}}
	if m.rng.IntN(2) == 0 {
		a = graph.Attrs{Kernel: [2]int{2, 2}, Stride: [2]int{1, 1}, Pad: [2]int{0, 1}}
	}
	if m.Shape(x).Elements() > 32 {
		a.Stride, a.Pad = [2]int{2, 2}, [2]int{}
	}
	kind := []graph.Kind{graph.MaxPool, graph.AvgPool}[m.rng.IntN(2)]
	if y := m.op(kind, a, m.bound(x), x); y != nil {
		m.pools = append(m.pools, m.remember(x, y[0]))
	}
}

// remember notes the last op with the tensors that its gradient reads.
func (m *maker) remember(tensors ...graph.TensorID) record {
	return record{graph.OpID(len(m.Peek().Ops) - 1), tensors}
}

// norm appends statistics and a normalisation, sometimes with an update of running statistics.
func norm(m *maker) {
	x, ok := m.image(tame)
	if !ok {
		return
	}
	c := m.Shape(x)[1]
	stats := m.op(graph.BatchNormStats, graph.Attrs{}, m.bound(x)*m.bound(x)+m.bound(x), x)
	gamma, beta := m.parameter(c), m.parameter(c)
	m.op(graph.BatchNorm, graph.Attrs{Epsilon: 1e-5}, weight*(maxElements+1), x, stats[0], stats[1], gamma, beta)
	m.norms = append(m.norms, m.remember(x, stats[0], stats[1], gamma))
}

// running updates running statistics by those of a normalisation.
func running(m *maker) {
	if r, ok := m.recent(m.norms); ok {
		x := m.Shape(r.tensors[0])
		a := m.state(m.Shape(r.tensors[1]))
		b := m.state(m.Shape(r.tensors[2]), a)
		m.op(graph.BatchNormUpdate, graph.Attrs{Momentum: 0.1, Length: max(2, x.Elements()/x[1])}, moment, r.tensors[1],
			r.tensors[2], a, b)
	}
}

// recent returns a record whose tensors are all still there.
func (m *maker) recent(all []record) (record, bool) {
	if len(all) == 0 {
		return record{}, false
	}
	r := all[m.rng.IntN(len(all))]
	return r, m.current(r.tensors...)
}

func dropout(m *maker) {
	x := m.pickTensor()
	kind := []graph.Kind{graph.Dropout, graph.DropoutDX}[m.rng.IntN(2)]
	m.op(kind, graph.Attrs{Rate: 0.25, Key: m.rng.Uint64N(4)}, 2*m.bound(x), x)
}

// scale brings a storage back to moderate values, in place.
func scale(m *maker) {
	if a, ok := m.mutable(false); ok {
		bound := m.bound(a)
		m.bounds[m.storage(a)] = 0
		m.op(graph.Scale, graph.Attrs{Factor: 2 / (1 + bound)}, 2, a)
	}
}

func accumulate(m *maker) {
	if a, ok := m.mutable(false); ok {
		if b, ok := m.pickShaped(m.Shape(a), wild, a); ok {
			m.op(graph.Accumulate, graph.Attrs{}, m.bound(a)+m.bound(b), a, b)
		}
	}
}

func loss(m *maker) {
	if x, ok := m.matrix(); ok {
		if y := m.op(graph.SoftmaxXent, graph.Attrs{}, 2*m.bound(x)+maxElements, x, m.labels); y != nil {
			m.losses = append(m.losses, y[1])
		}
	}
}
