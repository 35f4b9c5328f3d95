// Package nettest holds, for tests, the form in which each network of package models trains in moments and still holds
// every one of its ops: few examples, small ones, and thin layers.
package nettest

import (
	"tensile/graph"
	"tensile/graph/autodiff"
	"tensile/models"
)

// small is a network's small form: a name that gives its sizes, where the network has such a name, and settings.
type small struct {
	name   string // "": its own
	config models.Config
}

// fast is the optimizer of networks whose own would take long to get anywhere.
var fast = autodiff.Adam{LearningRate: 0.01}

// forms holds the networks that the usual form does not fit.
var forms = map[string]small{
	"mlp":         {"", models.Config{Image: 8, Batch: 32, Thin: 8}},
	"lenet":       {"", models.Config{Image: 12, Batch: 16}},
	"alexnet":     {"", models.Config{Image: 67, Batch: 4, Thin: 16}},
	"inceptionv3": {"", models.Config{Image: 75, Batch: 8, Thin: 16}},
	"inceptionv4": {"", models.Config{Image: 107, Batch: 4, Thin: 16}},
	"bert":        {"bert:1,16,2", models.Config{Sequence: 8, Vocabulary: 150, Batch: 32, Optimizer: fast}},
	"gpt2":        {"gpt:2,16,2", models.Config{Sequence: 8, Vocabulary: 150, Batch: 8, Optimizer: fast}},
	"gnmt":        {"gnmt:3,16", models.Config{Sequence: 4, Vocabulary: 150, Batch: 8, Optimizer: fast}},
	"rhn":         {"rhn:4,32", models.Config{Sequence: 6, Vocabulary: 150, Batch: 8, Optimizer: fast}},
	"tacotron2":   {"tacotron:1,16", models.Config{Sequence: 2, Vocabulary: 150, Batch: 3, Optimizer: fast}},
}

// Build returns the graph of a network's small form.
func Build(name string) (*graph.Graph, error) { return BuildFor(name, nil) }

// BuildFor is Build with an optimizer; nil means the form's own.
func BuildFor(name string, o autodiff.Optimizer) (*graph.Graph, error) { return build(name, 0, o) }

// BuildBatch is Build with another batch.
func BuildBatch(name string, batch int) (*graph.Graph, error) { return build(name, batch, nil) }

// Replicas returns the graphs of n replicas of a network's small form.
func Replicas(name string, n int) (*graph.Graph, error) {
	g, err := Build(name)
	if err != nil {
		return nil, err
	}
	return autodiff.Replicate(g, n)
}

func build(name string, batch int, o autodiff.Optimizer) (*graph.Graph, error) {
	form, ok := forms[name]
	if !ok {
		form.config = models.Config{Image: 32, Batch: 4, Thin: 16}
	}
	if form.name == "" {
		form.name = name
	}
	if batch > 0 {
		form.config.Batch = batch
	}
	if o != nil {
		form.config.Optimizer = o
	}
	return models.Build(form.name, form.config)
}
