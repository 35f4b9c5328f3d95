package onnx

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"testing"
)

// RandomModel is for tests that train on a device.
var RandomModel = randomModel

// WithPadding is a model of words whose table, which is the last layer too if it is tied, has a row for padding.
func WithPadding(row int, tied bool) *Model {
	m := &Model{IR: 8, Opsets: []Opset{{Version: 17}}}
	lookup := node("Gather", list("table", "x"), list("e"))
	lookup.fx = fmt.Sprintf("%%e : [num_users=1] = call_function[target=torch.ops.aten.embedding.default](args = "+
		"(%%p_table, %%x, %d), kwargs = {})", row)
	last := "head"
	if tied {
		last = "table"
	}
	m.Graph = Graph{Nodes: []Node{lookup, node("Tanh", list("e"), list("h")),
		node("Gemm", list("h", last), list("y"), "transB", 1)},
		Initializers: []Tensor{floats("table", sequence(5*4), 5, 4), floats("head", sequence(5*4), 5, 4)},
		Inputs:       []Value{typed("x", Int64, -1)}, Outputs: []Value{typed("y", Float32, -1, 5)}}
	return m
}

// A weight keeps the type that it has in the file, so that what reads it finds operands of one type still. What was
// trained is rounded to the nearest number of the type; the file loads again and has those numbers.
func TestSavedTypes(t *testing.T) {
	trained := sequence(30)
	for i := range trained {
		trained[i] += 1.0 / 3
	}
	steps := map[Type]float64{Float32: 0, Float64: 0, Float16: 1.0 / (1 << 11), BFloat16: 1.0 / (1 << 8)}
	for kind, step := range steps {
		m := perceptron()
		g := &m.Graph
		g.Inputs[0], g.Outputs[0] = typed("x", kind, -1, 6), typed("y", kind, -1, 3)
		for i := range g.Initializers {
			w := &g.Initializers[i]
			w.Type, w.Raw = kind, floating[kind].Append(nil, sequence(len(w.Raw)/4))
		}
		value := Tensor{Type: kind, Dims: []int64{1}, Raw: make([]byte, types[kind].size)}
		g.Initializers[3] = whole("dims", 3) // fc2.bias was left out
		g.Nodes = append([]Node{node("ConstantOfShape", list("dims"), list("fc2.bias"), "value", value)}, g.Nodes...)
		if _, _, err := Job(m, "x", Training{Batch: 2}); err != nil {
			t.Fatalf("%v: %v", kind, err)
		}
		m.Replace("fc1.weight", trained)
		m.Replace("fc2.bias", trained[:3])
		m.Replace("dims", []float32{7, 8, 9}) // whole numbers are never trained
		again, err := Decode(m.Encode())
		if err == nil {
			err = again.check()
		}
		if err != nil {
			t.Fatalf("%v: %v", kind, err)
		}
		_, contents, err := Job(again, "x", Training{Batch: 2})
		if err != nil {
			t.Fatalf("%v: %v", kind, err)
		}
		for _, w := range again.Graph.Initializers {
			if w.Name != "dims" && w.Type != kind {
				t.Errorf("%v: %s is of %v", kind, w.Name, w.Type)
			}
		}
		for name, want := range map[string][]float32{"fc1.weight": trained, "fc2.bias": trained[:3],
			"fc2.weight": sequence(15)} {
			got := contents[name]
			if len(got) != len(want) {
				t.Fatalf("%v: %s has %d elements, want %d", kind, name, len(got), len(want))
			}
			for i, v := range want {
				if d := math.Abs(float64(got[i]) - float64(v)); d > step*math.Abs(float64(v)) {
					t.Errorf("%v: %s has %v, want %v", kind, name, got[i], v)
				}
			}
		}
	}
}

// A double that training did not change keeps the digits that a float32 does not have.
func TestSavedDoubles(t *testing.T) {
	m := perceptron()
	w := &m.Graph.Initializers[1]
	w.Type, w.Raw = Float64, nil
	for i := range 5 {
		w.Raw = binary.LittleEndian.AppendUint64(w.Raw, math.Float64bits(float64(i)+0.1))
	}
	was := slices.Clone(w.Raw)
	content, err := w.Floats()
	if err != nil {
		t.Fatal(err)
	}
	content[2] = 7
	m.Replace("fc1.bias", content)
	binary.LittleEndian.PutUint64(was[16:], math.Float64bits(7))
	if !slices.Equal(w.Raw, was) {
		t.Errorf("%x, want %x", w.Raw, was)
	}
}
