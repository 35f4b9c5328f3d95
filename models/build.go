package models

import (
	"fmt"

	"tensile/graph"
	"tensile/graph/autodiff"
)

// imageNet is the usual image size of networks for photographs, in pixels.
const imageNet = 224

// model is a network and its defaults: a classifier of images, or what sequence says.
type model struct {
	image, channels int
	rate            float64             // share of the optimizer's recommended learning rate
	smallest        func(batch int) int // image size
	layers          func(n *net, x graph.TensorID, classes int) graph.TensorID
	sequence        *sequence // nil for classifiers of images
}

// Build returns the validated training graph of the named network: forward, backward and optimizer ops.
func Build(name string, c Config) (*graph.Graph, error) {
	m, err := find(name)
	if err != nil {
		return nil, err
	}
	g, err := m.build(name, c)
	if err != nil {
		return nil, fmt.Errorf("model %s: %w", name, err)
	}
	return g, nil
}

func (m model) build(name string, c Config) (*graph.Graph, error) {
	c, err := c.fill(m)
	if err != nil {
		return nil, err
	}
	b := graph.NewBuilder(name)
	loss := m.loss(&net{b: b, divisor: c.Thin}, c)
	b.Output(loss)
	grads, err := autodiff.Backward(b, loss)
	if err != nil {
		return nil, err
	}
	if err := autodiff.Optimize(b, grads, c.Optimizer); err != nil {
		return nil, err
	}
	g, err := b.Graph()
	if err != nil {
		return nil, err
	}
	return g, g.Validate()
}

// loss appends the forward ops and returns the loss.
func (m model) loss(n *net, c Config) graph.TensorID {
	if m.sequence != nil {
		return m.sequence.loss(n, sizes{c.Batch, c.Sequence, c.Vocabulary})
	}
	x := n.b.Input("input", graph.Images, graph.Float32, graph.Shape{c.Batch, c.Channels, c.Image, c.Image})
	labels := n.b.Input("labels", graph.Labels, graph.Float32, graph.Shape{c.Batch})
	logits := m.layers(n, x, c.Classes)
	n.b.SetLayer("loss")
	return n.b.Op("loss", graph.SoftmaxXent, graph.Attrs{}, logits, labels)[0]
}
