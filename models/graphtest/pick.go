package graphtest

import (
	"fmt"
	"slices"

	"tensile/graph"
)

// pickTensor returns a tensor to read, a later one more often than an earlier one.
func (m *maker) pickTensor() graph.TensorID {
	n := len(m.open)
	return m.open[max(m.rng.IntN(n), m.rng.IntN(n))]
}

// mutable returns a tensor that may be updated in place without growing, if there is one.
func (m *maker) mutable(persistent bool) (graph.TensorID, bool) {
	return m.choose(m.open, func(t graph.TensorID) bool {
		role := m.Peek().Storages[m.storage(t)].Role
		return role != graph.Input && (persistent || !role.Persistent())
	})
}

// choose returns a random tensor for which ok holds.
func (m *maker) choose(from []graph.TensorID, ok func(graph.TensorID) bool) (graph.TensorID, bool) {
	var fit []graph.TensorID
	for _, t := range from {
		if ok(t) {
			fit = append(fit, t)
		}
	}
	if len(fit) == 0 {
		return 0, false
	}
	return fit[m.rng.IntN(len(fit))], true
}

// pickShaped returns a tensor of the given shape: one that has it, or a view of a larger one. It stays within a bound
// and out of the storages of others.
func (m *maker) pickShaped(shape graph.Shape, bound float64, others ...graph.TensorID) (graph.TensorID, bool) {
	t, ok := m.choose(m.open, func(t graph.TensorID) bool {
		apart := !slices.ContainsFunc(others, func(o graph.TensorID) bool { return m.storage(o) == m.storage(t) })
		return apart && m.bound(t) <= bound && m.Shape(t).Elements() >= shape.Elements()
	})
	if !ok || slices.Equal(m.Shape(t), shape) {
		return t, ok
	}
	spare := m.Shape(t).Elements() - shape.Elements()
	name := fmt.Sprintf("view%d", len(m.Peek().Tensors))
	return m.View(name, t, graph.Bytes(m.rng.IntN(spare+1))*graph.ElementBytes, shape), true
}

// matrix returns a tensor of two rows.
func (m *maker) matrix() (graph.TensorID, bool) {
	return m.pickShaped(graph.Shape{2, []int{2, 3, 8, 16}[m.rng.IntN(4)]}, wild)
}

// image returns a tensor of small images.
func (m *maker) image(bound float64) (graph.TensorID, bool) {
	shapes := []graph.Shape{{2, 2, 4, 4}, {1, 2, 4, 4}, {2, 1, 4, 4}, {2, 4, 2, 2}}
	return m.pickShaped(shapes[m.rng.IntN(len(shapes))], bound)
}

// parameter returns the last version of a parameter of this shape, an old one or a new one.
func (m *maker) parameter(extents ...int) graph.TensorID {
	return m.source("p", graph.Parameter, &m.params, weight, extents)
}

// state returns the last version of a state of this shape outside of the storages of others.
func (m *maker) state(extents []int, others ...graph.TensorID) graph.TensorID {
	return m.source("s", graph.State, &m.states, moment, extents, others...)
}

func (m *maker) source(name string, role graph.Role, all *[]graph.TensorID, bound float64, shape graph.Shape,
	others ...graph.TensorID) graph.TensorID {
	old, ok := m.choose(*all, func(t graph.TensorID) bool {
		return slices.Equal(m.Shape(t), shape) && !slices.ContainsFunc(others, func(o graph.TensorID) bool {
			return m.storage(o) == m.storage(t)
		})
	})
	if ok && m.rng.IntN(3) > 0 {
		return m.newest(old)
	}
	init := graph.Init{Kind: graph.InitNormal, Scale: 0.3}
	if role == graph.State {
		init = graph.Init{Kind: []graph.InitKind{graph.InitZero, graph.InitOne}[m.rng.IntN(2)]}
	}
	t := m.Persistent(fmt.Sprintf("%s%d", name, len(*all)), role, shape, init)
	m.bounds[m.storage(t)] = bound
	*all = append(*all, t)
	if role == graph.Parameter {
		m.open = append(m.open, t)
	}
	return t
}

// newest returns a tensor as large as t that shows the last version of its storage.
func (m *maker) newest(t graph.TensorID) graph.TensorID {
	last := m.version(t)
	for _, u := range m.Peek().Tensors {
		if u.Storage == m.storage(t) && u.Version == last && slices.Equal(u.Shape, m.Shape(t)) {
			return u.ID
		}
	}
	return t
}
