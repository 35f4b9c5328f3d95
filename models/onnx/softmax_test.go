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

// A softmax that makes the first output is left out also where other nodes hand it on in another form, and where it is
// written as exponentials and their sum: what is trained is what a model without it has. One that is over anything else
// stays, and a line says so.
func TestSoftmaxInOtherForms(t *testing.T) {
	ends := func(version int64, shape []int, nodes ...Node) *Model {
		m := &Model{IR: 8, Opsets: []Opset{{Version: version}}, Graph: Graph{
			Nodes: append([]Node{node("MatMul", list("x", "w"), list("h"))}, nodes...),
			Initializers: []Tensor{floats("w", sequence(4*5), 4, 5), whole("last", -1), whole("one", 1),
				whole("rows", -1, 5)},
			Inputs: []Value{typed("x", Float32, shape...)}, Outputs: []Value{typed("y", Float32, -1, 5)}}}
		for i := range m.Graph.Nodes {
			m.Graph.Nodes[i].index = i
		}
		return m
	}
	swap := []any{"perm", []int64{0, 2, 1}}
	sum := node("ReduceSum", list("e", "last"), list("s"), "keepdims", 1)
	for _, c := range []struct {
		what   string
		shape  []int
		nodes  []Node
		leaves []string // operators that are left, but for the product and what changes shapes
	}{
		{"a name", []int{2, 4}, []Node{node("Softmax", list("h"), list("p")),
			node("Identity", list("p"), list("y"))}, nil},
		{"a logarithm", []int{2, 4}, []Node{node("LogSoftmax", list("h"), list("p")),
			node("Identity", list("p"), list("y"))}, nil},
		{"forms", []int{2, 3, 4}, []Node{node("Softmax", list("h"), list("p")),
			node("Unsqueeze", list("p", "one"), list("u")), node("Cast", list("u"), list("c"), "to", int(Float32)),
			node("Dropout", list("c"), list("d")), node("Squeeze", list("d", "one"), list("q")),
			node("Reshape", list("q", "rows"), list("y"))}, nil},
		{"a transpose", []int{2, 3, 4}, []Node{node("Transpose", list("h"), list("t"), swap...),
			node("Softmax", list("t"), list("p"), "axis", 1), node("Transpose", list("p"), list("y"), swap...)}, nil},
		{"by hand", []int{2, 4}, []Node{node("Exp", list("h"), list("e")), sum, node("Div", list("e", "s"), list("y"))},
			nil},
		{"by hand, with the largest taken off", []int{2, 3, 4}, []Node{
			node("ReduceMax", list("h"), list("m"), "axes", []int64{-1}), node("Sub", list("h", "m"), list("z")),
			node("Exp", list("z"), list("e")), sum, node("Div", list("e", "s"), list("p")),
			node("Identity", list("p"), list("y"))}, nil},
		{"by hand, with the largest of others taken off", []int{2, 3, 4}, []Node{
			node("ReduceMax", list("h"), list("m"), "axes", []int64{1}), node("Sub", list("h", "m"), list("z")),
			node("Exp", list("z"), list("e")), sum, node("Div", list("e", "s"), list("y"))},
			list("MaxPool", "Affine", "Add")},
		{"by hand, times one over the sum", []int{2, 4}, []Node{node("Exp", list("h"), list("e")), sum,
			node("Reciprocal", list("s"), list("r")), node("Mul", list("r", "e"), list("y"))}, nil},
		{"by hand, of a logarithm", []int{2, 4}, []Node{
			node("ReduceLogSumExp", list("h"), list("l"), "axes", []int64{1}),
			node("Sub", list("h", "l"), list("z")), node("Exp", list("z"), list("y"))}, nil},
		{"over the steps", []int{2, 3, 4}, []Node{node("Softmax", list("h"), list("p"), "axis", 1),
			node("Identity", list("p"), list("y"))}, list("Softmax")},
		{"another sum", []int{2, 3, 4}, []Node{node("Exp", list("h"), list("e")),
			node("ReduceSum", list("e", "one"), list("s")), node("Div", list("e", "s"), list("y"))},
			list("Exp", "Power")},
		{"a dropout that drops", []int{2, 4}, []Node{node("Softmax", list("h"), list("p")),
			node("Dropout", list("p", "", "train"), list("y"))}, list("Softmax", "Dropout")},
		{"in the middle", []int{2, 4}, []Node{node("Softmax", list("h"), list("p")),
			node("Relu", list("p"), list("y"))}, list("Softmax", "ReLU")},
	} {
		m := ends(13, c.shape, c.nodes...)
		m.Graph.Initializers = append(m.Graph.Initializers, Tensor{Name: "train", Type: Bool, Raw: []byte{1}})
		var told []string
		g, _, err := Job(m, "net", Training{Note: func(line string) { told = append(told, line) }})
		if err != nil {
			t.Errorf("%s: %v", c.what, err)
			continue
		}
		var left []string
		for _, op := range g.Ops {
			switch {
			case op.Phase != graph.Forward, slices.Contains([]graph.Kind{graph.MatMul, graph.Transpose, graph.SumOver,
				graph.Expand, graph.Mul, graph.SoftmaxXent}, op.Kind):
			default:
				left = append(left, string(op.Kind))
			}
		}
		var want []string
		for _, name := range c.leaves {
			want = append(want, map[string]string{"Softmax": string(graph.Softmax), "Exp": string(graph.Exp),
				"Power": string(graph.Power), "Dropout": string(graph.Dropout), "ReLU": string(graph.ReLU),
				"MaxPool": string(graph.MaxPool), "Affine": string(graph.Affine), "Add": string(graph.Add)}[name])
		}
		if !slices.Equal(left, want) {
			t.Errorf("%s: it is left with %v, want %v", c.what, left, want)
		}
		if other := c.what == "over the steps" || c.what == "another sum"; other != (len(told) == 1) {
			t.Errorf("%s: told %q", c.what, told)
		}
	}
}

// What is like a softmax in another form, and is none, stays.
func TestNoSoftmaxIsLeftOut(t *testing.T) {
	exp, sum := node("Exp", list("h"), list("e")), node("ReduceSum", list("e", "last"), list("s"), "keepdims", 1)
	lse := node("ReduceLogSumExp", list("h"), list("l"), "axes", []int64{-1})
	for _, c := range []struct {
		what  string
		nodes []Node
		stays graph.Kind
	}{
		{"divided by the largest", []Node{exp, node("ReduceMax", list("e"), list("m"), "axes", []int64{-1}),
			node("Div", list("e", "m"), list("y"))}, graph.Exp},
		{"divided by one over the sum", []Node{exp, sum, node("Reciprocal", list("s"), list("r")),
			node("Div", list("e", "r"), list("y"))}, graph.Exp},
		{"the exponential of a softmax", []Node{node("Softmax", list("h"), list("p")),
			node("Exp", list("p"), list("y"))}, graph.Softmax},
		{"a sum of other exponentials", []Node{exp, node("Relu", list("h"), list("z")),
			node("Exp", list("z"), list("f")),
			node("ReduceSum", list("f", "last"), list("s"), "keepdims", 1), node("Div", list("e", "s"), list("y"))},
			graph.ReLU},
		{"a sum that is broadcast along its own dimension", []Node{exp,
			node("ReduceSum", list("e", "last"), list("s"), "keepdims", 0), node("Div", list("e", "s"), list("y"))},
			graph.Exp},
		{"the logarithm of other sums", []Node{node("Relu", list("h"), list("z")),
			node("ReduceLogSumExp", list("z"), list("l"), "axes", []int64{-1}), node("Sub", list("h", "l"), list("y"))},
			graph.ReLU},
		{"one over the logarithm of sums", []Node{lse, node("Reciprocal", list("l"), list("r")),
			node("Sub", list("h", "r"), list("y"))}, graph.Exp},
		{"with the largest of each column taken off", []Node{
			node("ReduceMax", list("h"), list("m"), "axes", []int64{0}), node("Sub", list("h", "m"), list("z")),
			node("Exp", list("z"), list("e")), sum, node("Div", list("e", "s"), list("y"))}, graph.MaxPool},
		{"over all rows", []Node{node("Reshape", list("h", "flat"), list("f")), node("Softmax", list("f"), list("p")),
			node("Reshape", list("p", "rows"), list("y"))}, graph.Softmax},
	} {
		m := &Model{IR: 8, Opsets: []Opset{{Version: 13}}, Graph: Graph{
			Nodes: append([]Node{node("MatMul", list("x", "w"), list("h"))}, c.nodes...),
			Initializers: []Tensor{floats("w", sequence(4*5), 4, 5), whole("last", -1), whole("flat", 1, 25),
				whole("rows", 5, 5)},
			Inputs: []Value{typed("x", Float32, 5, 4)}, Outputs: []Value{typed("y", Float32, 5, 5)}}}
		for i := range m.Graph.Nodes {
			m.Graph.Nodes[i].index = i
		}
		g, _, err := Job(m, "net", Training{})
		if err != nil {
			t.Errorf("%s: %v", c.what, err)
			continue
		}
		if !slices.ContainsFunc(g.Ops, func(op graph.Op) bool {
			return op.Phase == graph.Forward && op.Kind == c.stays
		}) {
			t.Errorf("%s: no %s is left", c.what, c.stays)
		}
	}
}
