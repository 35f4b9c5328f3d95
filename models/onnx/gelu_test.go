package onnx

import (
	"fmt"
	"maps"
	"math"
	"strings"
	"testing"

	"tensile/graph"
)

// Nodes that are a GELU together become one op, in whatever order they are, and others stay what they are. Their values
// are tested by bench/onnxcases.
func TestGELUs(t *testing.T) {

	number := func(name string, v float64) Tensor { return floats(name, []float32{float32(v)}) }
	for _, c := range []struct {
		what  string
		nodes []Node
		want  map[graph.Kind]int
	}{
		{"by quotients", []Node{node("Div", list("x", "root"), list("u")), node("Erf", list("u"), list("e")),
			node("Add", list("e", "one"), list("s")), node("Mul", list("x", "s"), list("p")),
			node("Mul", list("p", "half"), list("y"))}, map[graph.Kind]int{graph.GELU: 1}},
		{"by products", []Node{node("Mul", list("inverse", "x"), list("u")), node("Erf", list("u"), list("e")),
			node("Add", list("one", "e"), list("s")), node("Mul", list("half", "x"), list("p")),
			node("Mul", list("s", "p"), list("y"))}, map[graph.Kind]int{graph.GELU: 1}},
		{"read in the middle", []Node{node("Div", list("x", "root"), list("u")), node("Erf", list("u"), list("e")),
			node("Add", list("e", "one"), list("s")), node("Mul", list("x", "s"), list("p")),
			node("Mul", list("p", "half"), list("g")), node("Add", list("g", "e"), list("y"))},
			map[graph.Kind]int{graph.GELU: 1, graph.Affine: 1, graph.Erf: 1, graph.Add: 1}},
		{"of another value", []Node{node("Div", list("z", "root"), list("u")), node("Erf", list("u"), list("e")),
			node("Add", list("e", "one"), list("s")), node("Mul", list("x", "s"), list("p")),
			node("Mul", list("p", "half"), list("y"))},
			map[graph.Kind]int{graph.Erf: 1, graph.Affine: 3, graph.Mul: 1}},
		{"a product inside that is an output", []Node{node("Div", list("x", "root"), list("u")),
			node("Erf", list("u"), list("e")), node("Add", list("e", "one"), list("s")),
			node("Mul", list("x", "s"), list("z2")), node("Mul", list("z2", "half"), list("y"))},
			map[graph.Kind]int{graph.Erf: 1, graph.Affine: 3, graph.Mul: 1}},
	} {
		m := &Model{IR: 8, Opsets: []Opset{{Version: 17}}, Graph: Graph{Name: "gelu", Nodes: c.nodes,
			Initializers: []Tensor{number("root", math.Sqrt2), number("inverse", math.Sqrt(0.5)), number("one", 1),
				number("half", 0.5)},
			Inputs:  []Value{typed("x", Float32, 2, 3), typed("z", Float32, 2, 3)},
			Outputs: []Value{{Name: "y"}, {Name: "z2"}}}}
		if c.what != "a product inside that is an output" {
			m.Graph.Outputs = m.Graph.Outputs[:1]
		}
		net, err := Import(m, "gelu", Options{})
		if err != nil {
			t.Fatalf("%s: %v", c.what, err)
		}
		got := make(map[graph.Kind]int)
		for _, op := range net.Builder.Peek().Ops {
			got[op.Kind]++
		}
		if !maps.Equal(got, c.want) {
			t.Errorf("%s: ops %v, want %v", c.what, got, c.want)
		}
	}
}

// Products whose inputs and outputs are left out, under the same empty name, are an error, not a search without end.
func TestProductOfNothing(t *testing.T) {
	m := &Model{IR: 8, Opsets: []Opset{{Version: 17}}, Graph: Graph{Name: "nothing", Nodes: []Node{
		node("Relu", list("x"), list("z")), {Op: "Mul", Inputs: list("", "z"), Outputs: list("", "y")}},
		Inputs: []Value{typed("x", Float32, 2, 3)}, Outputs: []Value{{Name: "z"}}}}
	if err := m.check(); err != nil {
		t.Fatal(err)
	}
	if _, err := Import(m, "nothing", Options{}); err == nil || !strings.Contains(err.Error(), "input 0 is missing") {
		t.Errorf("error %v", err)
	}
}

// A chain of products takes time in proportion to its length: a tenth of a second, else longer than a test may.
func TestChainOfProducts(t *testing.T) {
	const n = 8000
	m := &Model{IR: 8, Opsets: []Opset{{Version: 17}}, Graph: Graph{Name: "chain",
		Inputs: []Value{typed("x", Float32, 2, 3)}, Outputs: []Value{{Name: fmt.Sprint(n)}}}}
	last := "x"
	for i := range n {
		out := fmt.Sprint(i + 1)
		m.Graph.Nodes = append(m.Graph.Nodes, node("Mul", list(last, "x"), list(out)))
		last = out
	}
	if _, err := Import(m, "chain", Options{}); err != nil {
		t.Fatal(err)
	}
}

// A factor that is no number makes no GELU.
func TestNoNumberIsNoGELU(t *testing.T) {
	number := func(name string, v float64) Tensor { return floats(name, []float32{float32(v)}) }
	for _, numbers := range [][2]float64{{math.Sqrt2, math.NaN()}, {math.NaN(), 0.5}} {
		m := &Model{IR: 8, Opsets: []Opset{{Version: 17}}, Graph: Graph{Name: "gelu", Nodes: []Node{
			node("Div", list("x", "root"), list("u")), node("Erf", list("u"), list("e")),
			node("Add", list("e", "one"), list("s")), node("Mul", list("x", "s"), list("p")),
			node("Mul", list("p", "half"), list("y"))},
			Initializers: []Tensor{number("root", numbers[0]), number("one", 1), number("half", numbers[1])},
			Inputs:       []Value{typed("x", Float32, 2, 3)},
			Outputs:      []Value{{Name: "y"}}}}
		net, err := Import(m, "gelu", Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, op := range net.Builder.Peek().Ops {
			if op.Kind == graph.GELU {
				t.Errorf("numbers %v: they make a GELU", numbers)
			}
		}
	}
}
