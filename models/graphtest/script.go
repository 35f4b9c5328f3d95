package graphtest

import (
	"fmt"
	"math/rand/v2"

	"tensile/graph"
)

// Script returns the random graph of a script: opaque ops in three phases over storages of any bytes. Some they update
// in place, some the script holds for longer than ops use them. It passes Validate.
func Script(rng *rand.Rand) *graph.Graph {
	m := &scripted{Graph: &graph.Graph{Name: "script"}, rng: rng}
	for i := range 1 + rng.IntN(4) {
		m.storage(fmt.Sprintf("w%d", i), []graph.Role{graph.Parameter, graph.State}[rng.IntN(2)])
	}
	for s := range m.Storages {
		m.current[s] = m.tensor(graph.StorageID(s), 0)
	}
	count := 6 + rng.IntN(30)
	for i := range count {
		phase := []graph.Phase{graph.Forward, graph.Backward, graph.Optimize}[3*i/count]
		m.op(phase)
	}
	last := m.LastTouches()
	for i := range m.Storages {
		s := &m.Storages[i]
		switch {
		case s.Role.Persistent():
		case rng.IntN(4) == 0:
			s.Until = last[i] + 1 + graph.OpID(rng.IntN(len(m.Ops)-int(last[i])))
		}
	}
	if err := m.Validate(); err != nil {
		panic(fmt.Sprintf("graphtest: %v", err))
	}
	return m.Graph
}

type scripted struct {
	*graph.Graph
	rng     *rand.Rand
	current []graph.TensorID // per storage
}

func (m *scripted) storage(name string, role graph.Role) graph.StorageID {
	id := graph.StorageID(len(m.Storages))
	m.Storages = append(m.Storages, graph.Storage{ID: id, Name: name, Role: role,
		Bytes: graph.Bytes(1 + m.rng.IntN(2000))})
	m.current = append(m.current, 0)
	return id
}

func (m *scripted) tensor(s graph.StorageID, version int) graph.TensorID {
	id := graph.TensorID(len(m.Tensors))
	m.Tensors = append(m.Tensors, graph.Tensor{ID: id, Name: m.Storages[s].Name, Storage: s, Version: version,
		Shape: graph.Shape{int(m.Storages[s].Bytes)}, DType: graph.Uint8})
	return id
}

// op adds an op that reads some storages, updates one at times, and makes up to two.
func (m *scripted) op(phase graph.Phase) {
	op := graph.Op{ID: graph.OpID(len(m.Ops)), Name: fmt.Sprintf("op%d", len(m.Ops)), Kind: graph.Opaque, Phase: phase,
		Forward: graph.NoOp, Attrs: graph.Attrs{Once: m.rng.IntN(5) == 0,
			Scratch: max(0, graph.Bytes(m.rng.IntN(600)-400))}}
	picked := make(map[graph.StorageID]bool)
	for range m.rng.IntN(4) {
		s := graph.StorageID(m.rng.IntN(len(m.Storages)))
		if !picked[s] {
			picked[s] = true
			op.Inputs = append(op.Inputs, m.current[s])
		}
	}
	fresh := m.rng.IntN(3)
	if phase == graph.Optimize {
		fresh = m.rng.IntN(2)
	}
	if len(op.Inputs) > 0 && (fresh == 0 || m.rng.IntN(4) == 0) {
		t := m.Tensors[op.Inputs[m.rng.IntN(len(op.Inputs))]]
		m.current[t.Storage] = m.tensor(t.Storage, t.Version+1)
		op.Outputs = append(op.Outputs, m.current[t.Storage])
	} else {
		fresh = max(1, fresh)
	}
	for range fresh {
		s := m.storage(fmt.Sprintf("a%d", len(m.Storages)), []graph.Role{graph.Activation,
			graph.Gradient}[m.rng.IntN(2)])
		m.current[s] = m.tensor(s, 0)
		op.Outputs = append(op.Outputs, m.current[s])
	}
	m.Ops = append(m.Ops, op)
}
