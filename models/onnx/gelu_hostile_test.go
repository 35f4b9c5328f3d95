package onnx

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"tensile/graph"
)

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

// A chain of products takes time in proportion to its length.
func TestChainOfProducts(t *testing.T) {
	const n = 4000
	m := &Model{IR: 8, Opsets: []Opset{{Version: 17}}, Graph: Graph{Name: "chain",
		Inputs: []Value{typed("x", Float32, 2, 3)}, Outputs: []Value{{Name: fmt.Sprint(n)}}}}
	last := "x"
	for i := range n {
		out := fmt.Sprint(i + 1)
		m.Graph.Nodes = append(m.Graph.Nodes, node("Mul", list(last, "x"), list(out)))
		last = out
	}
	begin := time.Now()
	if _, err := Import(m, "chain", Options{}); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(begin); took > 20*time.Second { // a tenth of a second; it was a quarter of an hour
		t.Errorf("%d products take %v", n, took)
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
