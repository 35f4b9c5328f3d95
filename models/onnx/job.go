package onnx

import (
	"fmt"
	"slices"

	"tensile/graph"
	"tensile/graph/autodiff"
)

// Training says how a model is trained.
type Training struct {
	Batch, Sequence int                // see Options
	Loss            string             // "": of the model, or softmax cross-entropy; "mse": the mean square
	Optimizer       autodiff.Optimizer // nil: Adam
	Order           Order              // "": InFile
	// Note is told, in a line each, what a person should know of the training: what it leaves out of the model, and a
	// loss that is likely not what is meant. nil: nobody is.
	Note func(line string)
}

func (t *Training) options() Options {
	return Options{Batch: t.Batch, Sequence: t.Sequence, Train: true}
}

// Job makes the training graph of a model: its forward ops, a loss, gradients and updates. Nodes that the loss does not
// need are left out. It returns the contents that the graph begins with, by the names of their storages. Errors are
// those of Import, and a model without a loss or without parameters.
func Job(m *Model, name string, t Training) (*graph.Graph, map[string][]float32, error) {
	of := m.forTraining()
	if err := of.checkNorms(); err != nil {
		return nil, nil, err
	}
	if err := m.checkLoss(t.Loss, of); err != nil {
		return nil, nil, err
	}
	if err := of.checkValues(); err != nil {
		return nil, nil, err
	}
	var line string // about its softmax
	if t.Loss != "mse" {
		of, line = of.scores(name, t.options())
	}
	g, net, err := ordered(of, name, t)
	if err != nil {
		return nil, nil, of.otherBatch(name, t, err)
	}
	if t.Note != nil {
		m.note(of, net, line, t.Note)
	}
	return g, net.Contents, g.Validate()
}

// otherBatch says of an error whether the model can be trained with the batch that the file has, and with no other.
func (m *Model) otherBatch(name string, t Training, err error) error {
	for _, in := range m.Graph.Inputs {
		if len(in.Dims) == 0 || in.Dims[0].Extent < 1 || t.Batch == 0 || int64(t.Batch) == in.Dims[0].Extent {
			continue
		}
		t.Batch = 0
		if _, _, wrong := ordered(m, name, t); wrong == nil {
			return fmt.Errorf("the file is for a batch of %d and takes no other: use --batch %d, or export it with a "+
				"symbol there (%w)", in.Dims[0].Extent, in.Dims[0].Extent, err)
		}
		break
	}
	return err
}

// note tells what the training leaves out of a model, and a line about its softmax unless it is "".
func (m *Model) note(of *Model, net *Network, softmax string, tell func(line string)) {
	for _, line := range m.notes {
		tell(line)
	}
	if softmax != "" {
		tell(softmax)
	}
	at := m.Graph.trained()
	var others []string
	for k, out := range m.Graph.Outputs {
		if k != at {
			others = append(others, out.Name)
		}
	}
	if len(others) > 0 {
		with := ""
		if names := m.unread(of); len(names) > 0 {
			with = ", with what only that needs: " + listed(names)
		}
		tell(fmt.Sprintf("the loss is of output %.80q: %s, which it does not need, is left out%s",
			m.Graph.Outputs[at].Name, listed(others), with))
	}
	if held := net.importer.held; len(held) > 0 {
		tell(fmt.Sprintf("Constant nodes are not trained: %s; %s", listed(held), asInitializers))
	}
}

// asInitializers is what to do about weights in Constant nodes.
const asInitializers = "to train them, make them initializers, as docs/onnx.md shows"

// train makes the training graph of a model's nodes in an order in which they can be executed.
func train(m *Model, name string, nodes []*Node, t Training) (*graph.Graph, *Network, error) {
	net, err := importNodes(m, name, nodes, t.options())
	if err != nil {
		return nil, nil, err
	}
	b := net.Builder
	loss, err := net.loss(t.Loss)
	if err != nil {
		return nil, nil, err
	}
	b.Output(loss)
	if !slices.ContainsFunc(b.Peek().Storages, func(s graph.Storage) bool { return s.Role == graph.Parameter }) {
		return nil, nil, net.errNoParameters()
	}
	grads, err := autodiff.Backward(b, loss, net.importer.stops...)
	if err != nil {
		return nil, nil, err
	}
	if len(grads) == 0 {
		return nil, nil, net.errNoParameters()
	}
	if t.Optimizer == nil {
		t.Optimizer = autodiff.Adam{}
	}
	if err := autodiff.Optimize(b, grads, t.Optimizer.Recommended(1)); err != nil {
		return nil, nil, err
	}
	g, err := b.Graph()
	return g, net, err
}

// errNoParameters is the error of a model without parameters.
func (n *Network) errNoParameters() error {
	if held := n.importer.held; len(held) > 0 {
		return fmt.Errorf("there is nothing to train: weights are in Constant nodes: %s; %s", listed(held),
			asInitializers)
	}
	return fmt.Errorf("there is nothing to train: output %.80q depends on no initializer of floats that has a gradient",
		n.Outputs[0].Name)
}

// loss is the model's own, or one of its first output.
func (n *Network) loss(kind string) (graph.TensorID, error) {
	out := n.Outputs[0]
	if out.known != nil {
		return missing, n.errNoParameters()
	}
	if n.importer.loss {
		return out.Tensor, nil
	}
	b := n.Builder
	b.SetLayer("loss")
	name := func(name string) string {
		for n.importer.values[name] != nil {
			name = "tensile." + name
		}
		return name
	}
	switch kind {
	case "mse":
		targets := b.Input(name("targets"), graph.Anything, graph.Float32, full(out.Shape))
		return b.Op(name("loss"), graph.MeanSquare, graph.Attrs{}, out.Tensor, targets)[0], b.Err()
	case "", "xent":
	default:
		return missing, fmt.Errorf("unknown loss %.40q: choose xent or mse", kind)
	}
	s := out.Shape
	logits := out.Tensor
	c := &call{importer: n.importer, node: &Node{Outputs: []string{name("logits")}}}
	switch {
	case len(s) == 4 && s[2]*s[3] > 1: // scores of pixels
		logits = c.permute(c.withShape(logits, s...), []int{0, 2, 3, 1})
		logits = c.withShape(logits, s[0]*s[2]*s[3], s[1])
	case len(s) == 4:
		logits = c.withShape(logits, s[0], s[1])
	case len(s) >= 2:
		logits = c.withShape(logits, s[:len(s)-1].Elements(), s[len(s)-1])
	default:
		return missing, fmt.Errorf("output %.80q has shape %v: cross-entropy takes a row of scores for each example; "+
			"use --loss mse", out.Name, s)
	}
	rows := b.Shape(logits)[0]
	if b.Shape(logits)[1] == 1 {
		return missing, fmt.Errorf("output %.80q of shape %v has one score for each example, of which softmax "+
			"cross-entropy is 0 whatever the weights are: use --loss mse", out.Name, s)
	}
	holds := graph.Anything
	if rows == s[0] {
		holds = graph.Labels
	}
	labels := b.Input(name("labels"), holds, graph.Float32, graph.Shape{rows})
	return b.Op(name("loss"), graph.SoftmaxXent, graph.Attrs{}, logits, labels)[0], b.Err()
}

// Contents returns what a graph that Job made of the model begins with, by the names of its storages.
func Contents(m *Model, g *graph.Graph) (map[string][]float32, error) {
	o := Options{Train: true}
	for _, in := range m.Graph.Inputs {
		for _, t := range g.Tensors {
			if g.Storages[t.Storage].Role != graph.Input || t.Name != in.Name || len(t.Shape) != len(in.Dims) {
				continue
			}
			for d, dim := range in.Dims {
				if d == 0 {
					o.Batch = t.Shape[0]
				} else if dim.Extent == 0 {
					o.Sequence = t.Shape[d]
				}
			}
			break
		}
	}
	net, err := Import(m.forTraining(), g.Name, o)
	if err != nil {
		return nil, err
	}
	return net.Contents, nil
}
