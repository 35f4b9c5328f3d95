package models

import (
	"errors"
	"fmt"
	"slices"

	"tensile/graph"
)

// Evaluation returns the graph that a trained classifier predicts with: the forward ops of its training graph up to
// what the loss reads, whose content is the output. Batch normalisations use their running statistics, those that keep
// none the statistics of what they normalise, as in training, and nothing is dropped out. Its persistent
// storages have the names that they have in g, and are not updated. A graph without a loss of classes is an error.
func Evaluation(g *graph.Graph) (*graph.Graph, error) {
	e := evaluation{from: g, b: graph.NewBuilder(g.Name), made: make(map[graph.Version]graph.TensorID),
		running: make(map[graph.TensorID][2]graph.TensorID)}
	loss, err := e.loss()
	if err != nil {
		return nil, fmt.Errorf("evaluate %s: %w", g.Name, err)
	}
	needed := e.needed(loss.Inputs[0])
	for _, op := range g.Ops {
		if needed[op.ID] {
			e.op(op)
		}
	}
	logits := e.tensor(loss.Inputs[0])
	e.b.Output(logits)
	built, err := e.b.Graph()
	if err != nil {
		return nil, err
	}
	return built, built.Validate()
}

// evaluation is a training graph and what is built of it.
type evaluation struct {
	from    *graph.Graph
	b       *graph.Builder
	made    map[graph.Version]graph.TensorID     // by what it was: a tensor of all of a storage's elements
	running map[graph.TensorID][2]graph.TensorID // by the mean of a batch: running mean and variance
}

// loss finds the only loss, and the running statistics of each normalisation.
func (e *evaluation) loss() (loss graph.Op, err error) {
	found := 0
	for _, op := range e.from.Ops {
		switch {
		case op.Kind == graph.BatchNormUpdate:
			e.running[op.Inputs[0]] = [2]graph.TensorID{op.Inputs[2], op.Inputs[3]}
		case op.Kind == graph.SoftmaxXent && op.Phase == graph.Forward:
			loss = op
			found++
		}
	}
	if found != 1 {
		return loss, errors.New("it has no single loss of classes")
	}
	return loss, nil
}

// inputs are the tensors that an op reads when it evaluates.
func (e *evaluation) inputs(op graph.Op) []graph.TensorID {
	if op.Kind != graph.BatchNorm {
		return op.Inputs
	}
	r, kept := e.running[op.Inputs[1]]
	if !kept {
		return op.Inputs
	}
	return []graph.TensorID{op.Inputs[0], r[0], r[1], op.Inputs[3], op.Inputs[4]}
}

// needed marks the ops that a tensor comes from.
func (e *evaluation) needed(t graph.TensorID) []bool {
	needed := make([]bool, len(e.from.Ops))
	wanted := map[graph.Version]bool{e.from.Version(t): true}
	for id := len(e.from.Ops) - 1; id >= 0; id-- {
		op := e.from.Ops[id]
		for _, v := range e.from.Writes(op.ID) {
			needed[id] = needed[id] || wanted[v]
		}
		if needed[id] {
			for _, in := range e.inputs(op) {
				wanted[e.from.Version(in)] = true
			}
		}
	}
	return needed
}

// op builds an op, or hands on the input of one that does nothing in an evaluation.
func (e *evaluation) op(op graph.Op) {
	var inputs []graph.TensorID
	for _, in := range e.inputs(op) {
		inputs = append(inputs, e.tensor(in))
	}
	outputs := inputs[:1]
	if op.Kind != graph.Dropout {
		e.b.SetLayer(op.Layer)
		outputs = e.b.Op(op.Name, op.Kind, op.Attrs, inputs...)
	}
	for i, out := range op.Outputs {
		e.made[e.from.Version(out)] = outputs[i]
	}
}

// tensor returns what was built for a tensor: a source, an output of an op, or a view of one.
func (e *evaluation) tensor(id graph.TensorID) graph.TensorID {
	t := e.from.Tensors[id]
	made, ok := e.made[e.from.Version(id)]
	if !ok { // a source: the first tensor that shows all of it
		s := e.from.Storages[t.Storage]
		whole := graph.Shape{int(s.Bytes / t.DType.Bytes())}
		for _, x := range e.from.Tensors {
			if x.Storage == s.ID && x.Bytes() == s.Bytes {
				whole = x.Shape
				break
			}
		}
		if s.Role == graph.Input {
			made = e.b.Input(s.Name, s.Holds, t.DType, whole)
		} else {
			made = e.b.Persistent(s.Name, s.Role, whole, *s.Init)
		}
		e.made[e.from.Version(id)] = made
	}
	if built := e.b.Peek().Tensors[made]; t.Offset == 0 && slices.Equal(built.Shape, t.Shape) {
		return made
	}
	return e.b.View(t.Name, made, t.Offset, t.Shape)
}
