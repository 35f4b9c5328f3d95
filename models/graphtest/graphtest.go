package graphtest

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"tensile/graph"
	"tensile/models/passes"
)

// Options bound what New makes. The zero value is the recommended setting.
type Options struct {
	Ops    int  // about the most ops; 0: 28
	Passes bool // rewrite the graph by all passes
	// parameters of several rows are updated by gradients of their own, as networks do it; otherwise that is rare
	Trained bool
}

// maxElements is the largest number of elements of a tensor.
const maxElements = 64

const (
	tame   = 1e3 // magnitude up to which a tensor may feed an optimizer or a normalisation
	wild   = 1e9 // magnitude that no op may exceed
	weight = 8   // bound of a parameter, updates of a few iterations included
	moment = 1e6 // bound of an optimizer state or running statistic
)

// New returns a random graph that passes Validate.
func New(rng *rand.Rand, o Options) *graph.Graph {
	if o.Ops == 0 {
		o.Ops = 28
	}
	m := &maker{Builder: graph.NewBuilder("random"), rng: rng, bounds: map[graph.StorageID]float64{}}
	m.begin()
	want := 4 + rng.IntN(max(1, o.Ops-4))
	for tries := 0; len(m.Peek().Ops) < want && tries < 20*want; tries++ {
		done := len(m.Peek().Ops) * 3 / want
		m.SetPhase([]graph.Phase{graph.Forward, graph.Backward, graph.Optimize}[min(done, 2)])
		ops := tables[min(done, 2)]
		if rng.IntN(6) == 0 {
			ops = tables[rng.IntN(len(tables))] // updates in between, activations late
		}
		if o.Trained && done > 0 && rng.IntN(3) == 0 {
			trained(m)
			continue
		}
		ops[rng.IntN(len(ops))](m)
	}
	m.outputs()
	g, err := m.Graph()
	if err == nil {
		err = g.Validate()
	}
	if err != nil {
		panic(fmt.Sprintf("graphtest: %v", err))
	}
	if !o.Passes {
		return g
	}
	rewritten, _, err := passes.Apply(g, passes.Names())
	if err != nil {
		panic(fmt.Sprintf("graphtest: %v", err))
	}
	return rewritten
}

// maker appends ops at random.
type maker struct {
	*graph.Builder
	rng    *rand.Rand
	open   []graph.TensorID // what ops may read: per storage the newest tensor of its last version
	bounds map[graph.StorageID]float64

	labels graph.TensorID
	fresh  []graph.StorageID // made by ops
	params []graph.TensorID  // version 0 of parameters
	states []graph.TensorID  // version 0 of states
	second []graph.TensorID  // version 0 of second moments, which are never negative
	pools  []record
	norms  []record
	losses []graph.TensorID // probabilities
}

// record is an op that a gradient op may follow.
type record struct {
	op      graph.OpID
	tensors []graph.TensorID
}

// begin adds the inputs and a first op, so that there is always something to read and an output to choose.
func (m *maker) begin() {
	x := m.Input("x", graph.Anything, graph.Float32, graph.Shape{2, 2, 4, 4})
	m.labels = m.Input("labels", graph.Anything, graph.Float32, graph.Shape{2})
	m.bounds[m.storage(x)], m.open = 1, append(m.open, x)
	if m.rng.IntN(2) == 0 {
		z := m.Input("z", graph.Anything, graph.Float32, graph.Shape{2, 8})
		m.bounds[m.storage(z)], m.open = 1, append(m.open, z)
	}
	m.op(graph.ReLU, graph.Attrs{}, 1, x)
}

// outputs declares one to three storages made by ops as outputs.
func (m *maker) outputs() {
	for range 1 + m.rng.IntN(3) {
		s := m.fresh[m.rng.IntN(len(m.fresh))]
		i := slices.IndexFunc(m.Peek().Tensors, func(t graph.Tensor) bool { return t.Storage == s })
		m.Output(graph.TensorID(i))
	}
}

func (m *maker) storage(t graph.TensorID) graph.StorageID { return m.Peek().Tensors[t].Storage }
func (m *maker) bound(t graph.TensorID) float64           { return m.bounds[m.storage(t)] }

// op appends an op whose outputs stay within a bound, opens them for reading and returns them. Where the bound is too
// large it appends nothing.
func (m *maker) op(kind graph.Kind, attrs graph.Attrs, bound float64, inputs ...graph.TensorID) []graph.TensorID {
	if bound > wild {
		return nil
	}
	name := fmt.Sprintf("%s%d", kind, len(m.Peek().Ops))
	outputs := m.Op(name, kind, attrs, inputs...)
	for _, t := range outputs {
		s := m.storage(t)
		if m.Peek().Tensors[t].Version == 0 {
			m.fresh = append(m.fresh, s)
		}
		if !m.Peek().Storages[s].Role.Persistent() {
			m.bounds[s] = max(m.bounds[s], bound)
		}
		m.open = slices.DeleteFunc(m.open, func(u graph.TensorID) bool { return m.storage(u) == s })
		m.open = append(m.open, t)
	}
	return outputs
}

// current reports whether the tensors still show the last versions of their storages.
func (m *maker) current(tensors ...graph.TensorID) bool {
	return !slices.ContainsFunc(tensors, func(t graph.TensorID) bool {
		return m.version(t) != m.Peek().Tensors[t].Version
	})
}

// version is the last version of the storage behind t.
func (m *maker) version(t graph.TensorID) int {
	last := 0
	for _, u := range m.Peek().Tensors {
		if u.Storage == m.storage(t) {
			last = max(last, u.Version)
		}
	}
	return last
}
