package onnx

import (
	"slices"
	"testing"

	"tensile/graph"
)

// A softmax over classes that makes the first output is left to a cross-entropy, and to no other loss; any other stays.
func TestSoftmaxIsLeftOut(t *testing.T) {
	conv := func(version int64, axis int) *Model {
		return &Model{IR: 8, Opsets: []Opset{{Version: version}}, Graph: Graph{
			Nodes: []Node{node("Conv", list("x", "w"), list("h")),
				node("Softmax", list("h"), list("y"), "axis", axis)},
			Initializers: []Tensor{floats("w", sequence(3*2), 3, 2, 1, 1)},
			Inputs:       []Value{typed("x", Float32, 4, 2, 5, 5)}, Outputs: []Value{typed("y", Float32, 4, 3, 5, 5)}}}
	}
	rows := perceptron()
	rows.Graph.Nodes = append(rows.Graph.Nodes, node("Softmax", list("y"), list("p"), "axis", -1))
	rows.Graph.Outputs[0].Name = "p"
	for _, c := range []struct {
		what, loss string
		m          *Model
		stays      bool
	}{
		{"rows", "", rows, false},
		{"rows", "mse", rows, true},
		{"pixels, classes", "", conv(17, 1), false},
		{"pixels, classes", "mse", conv(17, 1), true},
		{"pixels, rows of an image", "", conv(17, 3), true},
		{"whole images", "", conv(11, 1), true},
	} {
		for i := range c.m.Graph.Nodes {
			c.m.Graph.Nodes[i].index = i
		}
		g, _, err := Job(c.m, "net", Training{Loss: c.loss})
		if err != nil {
			t.Errorf("%s, loss %q: %v", c.what, c.loss, err)
			continue
		}
		stays := slices.ContainsFunc(g.Ops, func(o graph.Op) bool { return o.Kind == graph.Softmax })
		if stays != c.stays {
			t.Errorf("%s, loss %q: the softmax stays: %v, want %v", c.what, c.loss, stays, c.stays)
		}
	}
}
