package onnx

import (
	"fmt"

	"tensile/autodiff"
	"tensile/graph"
)

// Training says how a model is trained.
type Training struct {
	Batch, Sequence int                // see Options
	Loss            string             // "": of the model, or softmax cross-entropy; "mse": the mean square
	Optimizer       autodiff.Optimizer // nil: Adam
	Order           Order              // "": InFile
}

// Job makes the training graph of a model: its forward ops, a loss, gradients and updates. It returns the contents that
// the graph begins with, by the names of their storages. Errors are those of Import, and a model without a loss or
// without parameters.
func Job(m *Model, name string, t Training) (*graph.Graph, map[string][]float32, error) {
	g, net, err := ordered(m, name, t)
	if err != nil {
		return nil, nil, err
	}
	return g, net.Contents, g.Validate()
}

// train makes the training graph of a model's nodes in an order in which they can be executed.
func train(m *Model, name string, nodes []*Node, t Training) (*graph.Graph, *Network, error) {
	net, err := importNodes(m, name, nodes, Options{Batch: t.Batch, Sequence: t.Sequence, Train: true,
		Logits: t.Loss != "mse"})
	if err != nil {
		return nil, nil, err
	}
	b := net.Builder
	loss, err := net.loss(t.Loss)
	if err != nil {
		return nil, nil, err
	}
	b.Output(loss)
	grads, err := autodiff.Backward(b, loss)
	if err != nil {
		return nil, nil, err
	}
	if len(grads) == 0 {
		return nil, nil, fmt.Errorf("no initializer of the model has a gradient: there is nothing to train")
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

// loss is the model's own, or one of its first output.
func (n *Network) loss(kind string) (graph.TensorID, error) {
	out := n.Outputs[0]
	if out.known != nil {
		return missing, fmt.Errorf("output %.80q depends on nothing that is trained", out.Name)
	}
	if n.importer.loss {
		if kind != "" || out.Shape.Elements() != 1 {
			return missing, fmt.Errorf("the model has a loss: it must be the first output, and --loss is left out")
		}
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
		logits = c.permute(c.as(logits, s...), []int{0, 2, 3, 1})
		logits = c.as(logits, s[0]*s[2]*s[3], s[1])
	case len(s) == 4:
		logits = c.as(logits, s[0], s[1])
	case len(s) >= 2:
		logits = c.as(logits, s[:len(s)-1].Elements(), s[len(s)-1])
	default:
		return missing, fmt.Errorf("output %.80q has shape %v: cross-entropy takes a row of scores for each example; "+
			"use --loss mse", out.Name, s)
	}
	rows := b.Shape(logits)[0]
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
	net, err := Import(m, g.Name, o)
	if err != nil {
		return nil, err
	}
	return net.Contents, nil
}
