package onnx

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tensile/graph"
)

// trainedOf are the parameters of a model's training graph, and the lines that it tells.
func trainedOf(t *testing.T, m *Model) (names, lines []string) {
	t.Helper()
	g, _, err := Job(m, "x", Training{Note: func(line string) { lines = append(lines, line) }})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range g.Storages {
		if s.Role == graph.Parameter {
			names = append(names, fmt.Sprint(s.Name, " ", int64(s.Bytes/graph.ElementBytes)))
		}
	}
	slices.Sort(names)
	return names, lines
}

// A file of PyTorch's default exporter has the parameters of its module: what began equal is given apart, biases of
// zero that the exporter left out are back, buffers and the exporter's own numbers are not trained. What is saved is
// read to the same.
func TestSeparateSigned(t *testing.T) {
	want := []string{"a.bias 8", "a.weight 8", "b.bias 8", "b.weight 8", "bn.bias 8", "bn.weight 8", "c.bias 8",
		"c.weight 8", "d.bias 8", "d.weight 64", "e.bias 8", "e.weight 64", "embed.weight 56", "head.bias 7",
		"head.weight 56", "scale 1", "token 8", "zero.bias 8", "zero.weight 8"}
	m, err := Read(nil, filepath.Join("testdata", "fresh.onnx"))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		names, _ := trainedOf(t, m)
		if diff := cmp.Diff(want, names); diff != "" {
			t.Errorf("parameters (-want +got):\n%s", diff)
		}
		if m, err = Decode(m.Encode()); err != nil {
			t.Fatal(err)
		}
		if err := m.check(); err != nil {
			t.Fatal(err)
		}
		m.separate()
	}
}

// signs is a perceptron as an exporter writes it that says which parameters the module has.
func signs(of func(m *Model, g *Graph)) *Model {
	m := with(of)
	g := &m.Graph
	g.signature = "\n# inputs\n"
	for _, key := range []string{"fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias", "other.weight"} {
		g.signature += fmt.Sprintf("p_%s: PARAMETER target='%s'\n", strings.ReplaceAll(key, ".", "_"), key)
	}
	g.signature += "b_table: BUFFER target='table' persistent=True\nx: USER_INPUT\n"
	call := func(n *Node, text string) {
		if n.fx != "" {
			return
		}
		n.fx = "%" + n.Outputs[0] + " : [num_users=1] = call_function[target=" + text
	}
	for i := range g.Nodes {
		switch n := &g.Nodes[i]; n.Outputs[0] {
		case "h":
			call(n, "torch.ops.aten.linear.default](args = (%x, %p_fc1_weight, %p_fc1_bias), kwargs = {})")
		case "r":
			call(n, "torch.ops.aten.add.Tensor](args = (%h, %b_table), kwargs = {})")
		case "y":
			call(n, "torch.ops.aten.linear.default](args = (%r, %p_fc2_weight, %p_fc2_bias), kwargs = {})")
		}
	}
	m.separate()
	return m
}

// What each reading of an initializer stands for follows from the call that its node is of.
func TestSeparateByCalls(t *testing.T) {
	square := func(m *Model, g *Graph) { // two products of 5 by 5, and a sum of five between them
		g.Inputs[0] = typed("x", Float32, -1, 5)
		g.Initializers = []Tensor{floats("fc1.weight", sequence(25), 5, 5), floats("fc1.bias", make([]float32, 5), 5)}
		g.Nodes[0].Inputs = list("x", "fc1.weight", "fc1.bias")
		g.Nodes[1] = node("Add", list("h", "fc1.bias"), list("r"))
		g.Nodes[2].Inputs = list("r", "fc1.weight", "fc1.bias")
	}
	all := []string{"fc1.bias 5", "fc1.weight 25", "fc2.bias 5", "fc2.weight 25"}
	for what, of := range map[string]func(m *Model, g *Graph){
		"equal": square,
		"a bias left out": func(m *Model, g *Graph) {
			square(m, g)
			g.Nodes[2].Inputs, g.Nodes[2].rules = list("r", "fc1.weight"), "RemoveOptionalBiasFromGemm"
		},
		"transposed": func(m *Model, g *Graph) {
			square(m, g)
			g.Initializers = append(g.Initializers, floats("val_3", sequence(25), 5, 5))
			g.Nodes[2] = node("MatMul", list("r", "val_3"), list("val_4"))
			g.Nodes = append(g.Nodes, node("Add", list("val_4", "fc1.bias"), list("y")))
			g.Nodes[2].fx = "%y : [num_users=1] = call_function[target=torch.ops.aten.linear.default](args = (%r, " +
				"%p_fc2_weight, %p_fc2_bias), kwargs = {})"
		},
	} {
		m := signs(of)
		names, lines := trainedOf(t, m)
		if diff := cmp.Diff(all, names); diff != "" || len(lines) != 1 || !strings.HasPrefix(lines[0],
			`no node reads the parameters "other.weight"`) {
			t.Errorf("%s: lines %q, parameters (-want +got):\n%s", what, lines, diff)
		}
		made := make(map[string]bool) // as the checker of ONNX wants it: nodes stand behind those that they read from
		for _, n := range m.Graph.Nodes {
			if n.Op == "MatMul" && !made[n.Inputs[1]] {
				t.Errorf("%s: %s stands before what makes %s", what, n.Name, n.Inputs[1])
			}
			made[n.Outputs[0]] = true
		}
		if what != "transposed" {
			continue
		}
		for _, w := range m.Graph.Initializers {
			if v, err := w.Floats(); w.Name == "fc2.weight" && (err != nil || v[1] != sequence(25)[5]) {
				t.Errorf("the weight of the product is %v, %v, want it as the module has it", v, err)
			}
		}
	}
}

// Zeros that a recurrent layer begins with, and numbers of the exporter's own, are not trained. A state that was
// computed of a parameter is, once for all examples.
func TestSeparateStates(t *testing.T) {
	for state, want := range map[string]int64{"%zeros": 60 + 75 + 30, "%clone": 60 + 75 + 30 + 5} {
		g, _, err := Job(withState(state), "x", Training{Loss: "mse"})
		if err != nil {
			t.Fatal(err)
		}
		if n := g.Parameters(); n != want {
			t.Errorf("%s: %d parameters, want %d", state, n, want)
		}
	}
}

// withState is a GRU of a module that begins with what a call made.
func withState(state string) *Model {
	return with(func(m *Model, g *Graph) {
		g.Inputs, g.Outputs = []Value{typed("x", Float32, 3, 2, 4)}, []Value{typed("y", Float32, 3, 1, 2, 5)}
		g.Initializers = []Tensor{floats("val_1", sequence(60), 1, 15, 4), floats("val_2", sequence(75), 1, 15, 5),
			floats("val_3", make([]float32, 30), 1, 30), floats("val_4", make([]float32, 10), 1, 2, 5), floats("val_5",
				[]float32{0.5}, 1)}
		g.Nodes = []Node{node("GRU", list("x", "val_1", "val_2", "val_3", "", "val_4"), list("g"), "hidden_size", 5),
			node("Mul", list("g", "val_5"), list("y"))}
		g.Nodes[0].fx = "%g : [num_users=1] = call_function[target=torch.ops.aten.gru.input](args = (%x, " + state +
			", [%p_w, %p_r, %p_b, %p_c]), kwargs = {})"
		g.signature = "p_w: PARAMETER target='w'\np_r: PARAMETER target='r'\np_b: PARAMETER target='b'\n" +
			"p_c: PARAMETER target='c'\np_s: PARAMETER target='s'\n"
		m.separate()
	})
}

// withRows is a model whose exporter has computed two rows, of which the first is a bias.
func withRows(second ...float32) *Model {
	return signs(func(m *Model, g *Graph) {
		g.Inputs[0] = typed("x", Float32, 2, 6)
		bias := []float32{1, 2, 3, 4, 5}
		g.Initializers = append(g.Initializers, floats("linear_1", append(bias, second...), 2, 5))
		g.Initializers[slices.IndexFunc(g.Initializers, func(w Tensor) bool { return w.Name == "fc1.bias" })] =
			floats("fc1.bias", bias, 5)
		g.Nodes[1] = node("Add", list("h", "linear_1"), list("r"))
		g.Nodes[1].fx = "%r : [num_users=1] = call_function[target=torch.ops.aten.add.Tensor](args = (%h, " +
			"%linear_1), kwargs = {})"
		g.Nodes[0].fx = "%h : [num_users=1] = call_function[target=torch.ops.aten.addmm.default](args = " +
			"(%p_fc1_weight, %x, %p_fc1_bias), kwargs = {})"
	})
}

// A bias that the exporter added to zeros is the module's, in each row.
func TestSeparateRows(t *testing.T) {
	isBias := func(n Node) bool { return n.Op == "Expand" && n.Inputs[0] == "fc1.bias" }
	if m := withRows(1, 2, 3, 4, 6); slices.ContainsFunc(m.Graph.Nodes, isBias) {
		t.Error("rows that differ are taken for the bias")
	}
	m := withRows(1, 2, 3, 4, 5)
	names, _ := trainedOf(t, m)
	if want := []string{"fc1.bias 5", "fc1.weight 30", "fc2.bias 3", "fc2.weight 15"}; cmp.Diff(want, names) != "" {
		t.Errorf("parameters (-want +got):\n%s", cmp.Diff(want, names))
	}
	if !slices.ContainsFunc(m.Graph.Nodes, isBias) {
		t.Error("the rows are not the bias")
	}
}

// Without a signature each node that reads ones or zeros as a scale or shift has them for itself, which a line says:
// also where an exporter reads them by Identity, and where one of them is a running statistic. What a module really has
// twice PyTorch's older exporter reads directly.
func TestSeparateAlike(t *testing.T) {
	ones := func(name string) Tensor { return floats(name, []float32{1, 1, 1, 1, 1}, 5) }
	norms := func(m *Model, g *Graph, second Node) {
		g.Initializers = append(g.Initializers, ones("w"), floats("b", make([]float32, 5), 5))
		g.Nodes[1] = node("LayerNormalization", list("h", "w", "b"), list("n"))
		g.Nodes = append(g.Nodes, second)
	}
	again := func() Node { return node("LayerNormalization", list("n", "w", "b"), list("r")) }
	bn := func() Node { return node("BatchNormalization", list("n", "w", "b", "b", "w"), list("r")) }
	base := []string{"b 5", "fc1.bias 5", "fc1.weight 30", "fc2.bias 3", "fc2.weight 15"}
	for what, c := range map[string]struct {
		of   func(m *Model, g *Graph)
		want []string
		line bool
	}{
		"two norms": {func(m *Model, g *Graph) {
			norms(m, g, again())
		}, []string{"r.1 5", "r.2 5", "w 5"}, true},
		"a running figure": {func(m *Model, g *Graph) { norms(m, g, bn()) }, []string{"r.1 5", "r.2 5", "w 5"}, true},
		"by Identity": {func(m *Model, g *Graph) {
			norms(m, g, node("LayerNormalization", list("n", "w2", "b2"), list("r")))
			before(g, node("Identity", list("w"), list("w2")))
			before(g, node("Identity", list("b"), list("b2")))
		}, []string{"b2 5", "w 5", "w2 5"}, true},
		"one module twice": {func(m *Model, g *Graph) {
			norms(m, g, again())
			g.Nodes[0].Name = "/fc1/Gemm"
		}, []string{"w 5"}, false},
	} {
		m := with(c.of)
		m.separate()
		names, lines := trainedOf(t, m)
		want := append(slices.Clone(base), c.want...)
		if slices.Sort(want); cmp.Diff(want, names) != "" {
			t.Errorf("%s: parameters (-want +got):\n%s", what, cmp.Diff(want, names))
		}
		told := slices.ContainsFunc(lines, func(line string) bool {
			return strings.Contains(line, `"w"`) && strings.Contains(line, "each has its own")
		})
		if told != c.line {
			t.Errorf("%s: lines %q", what, lines)
		}
	}
}

// What an exporter has folded batch normalisations into is refused for training, with the command that keeps them.
func TestFoldedNorms(t *testing.T) {
	m := with(func(_ *Model, g *Graph) { g.Nodes[0].rules = "FuseBatchNormIntoGemm" })
	_, _, err := Job(m, "x", Training{})
	if err == nil || !strings.Contains(err.Error(), `folded 1 batch normalisations`) ||
		!strings.Contains(err.Error(), `"Gemm_h"`) || !strings.Contains(err.Error(), "dynamo=False") {
		t.Errorf("error %v", err)
	}
	if _, err := Import(m, "x", Options{}); err != nil {
		t.Errorf("what is not trained is refused: %v", err)
	}
}
