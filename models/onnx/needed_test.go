package onnx

import (
	"slices"
	"strings"
	"testing"

	"tensile/graph"
)

// What the loss does not need may be anything: another output, before the one that is trained or after it, and nodes
// that nothing reads. A line names the outputs that are left out.
func TestLeftOut(t *testing.T) {
	label := typed("label", Int64, -1)
	for _, c := range []struct {
		what    string
		outputs []Value
		nodes   []Node
		told    string
	}{
		{"an output", []Value{typed("y", Float32, -1, 3), label}, []Node{node("ArgMax", list("y"), list("label"))},
			`the loss is of output "y": "label", which it does not need, is left out`},
		{"the first output", []Value{label, typed("y", Float32, -1, 3)},
			[]Node{node("ArgMax", list("y"), list("label"))},
			`the loss is of output "y": "label", which it does not need, is left out`},
		{"an output with weights", []Value{typed("y", Float32, -1, 3), typed("a", Float32, -1, 6)},
			[]Node{node("MatMul", list("r", "fc1.weight"), list("b")), node("Mul", list("b", "own"), list("a"))},
			`the loss is of output "y": "a", which it does not need, is left out, with what only that needs: "own"`},
		{"a dead node", []Value{typed("y", Float32, -1, 3)}, []Node{node("FFT", list("r"), list("dead")),
			node("Cast", list("dead"), list("deader"), "to", int(Int64))}, ""},
	} {
		plain, contents, err := Job(perceptron(), "x", Training{Batch: 2})
		if err != nil {
			t.Fatal(err)
		}
		m := with(func(_ *Model, g *Graph) {
			g.Outputs, g.Nodes = c.outputs, append(g.Nodes, c.nodes...)
			g.Inputs = append(g.Inputs, typed("dead input", Float32, -1, -1))
			g.Initializers = append(g.Initializers, floats("own", sequence(6), 6))
		})
		var told []string
		g, _, err := Job(m, "x", Training{Batch: 2, Note: func(line string) { told = append(told, line) }})
		if err != nil {
			t.Errorf("%s: %v", c.what, err)
			continue
		}
		if g.Digest() != plain.Digest() {
			t.Errorf("%s: the graph is not that without it", c.what)
		}
		if got := strings.Join(told, "; "); got != c.told {
			t.Errorf("%s: told %q, want %q", c.what, got, c.told)
		}
		if again, err := Contents(m, g); err != nil || len(again) != len(contents) {
			t.Errorf("%s: contents %v, %v", c.what, again, err)
		}
	}
}

// What cannot be trained as it is meant is an error that says so and what to do.
func TestNothingToTrain(t *testing.T) {
	inConstants := func(names ...string) *Model {
		return with(func(_ *Model, g *Graph) {
			for _, name := range names {
				k := slices.IndexFunc(g.Initializers, func(x Tensor) bool { return x.Name == name })
				before(g, node("Constant", nil, list(name), "value", g.Initializers[k]))
				g.Initializers = slices.Delete(g.Initializers, k, k+1)
			}
		})
	}
	oneColumn := with(func(_ *Model, g *Graph) {
		g.Initializers[2] = floats("fc2.weight", sequence(5), 1, 5)
		g.Initializers[3] = floats("fc2.bias", sequence(1), 1)
		g.Outputs[0] = typed("y", Float32, -1, 1)
	})
	ownLoss := func(scores string) *Model {
		m := perceptron()
		m.Graph.Inputs = append(m.Graph.Inputs, typed("t", Int64, -1))
		m.Graph.Nodes = append(m.Graph.Nodes, node("SoftmaxCrossEntropyLoss", list(scores, "t"), list("l")))
		m.Graph.Outputs = append(m.Graph.Outputs, typed("l", Float32))
		return m
	}
	for _, c := range []struct {
		what string
		m    *Model
		loss string
		want string
	}{
		{"one column", oneColumn, "", `output "y" of shape [2 1] has one score for each example, of which softmax ` +
			"cross-entropy is 0 whatever the weights are: use --loss mse"},
		{"one column of a mean square", oneColumn, "mse", ""},
		{"weights in constants", inConstants("fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias"), "",
			`weights are in Constant nodes: "fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias"; to train them`},
		{"weights without values", with(func(_ *Model, g *Graph) {
			for _, x := range g.Initializers[:2] {
				g.Inputs = append(g.Inputs, typed(x.Name, Float32, slices.Collect(func(yield func(int) bool) {
					for _, d := range x.Dims {
						if !yield(int(d)) {
							return
						}
					}
				})...))
			}
			g.Initializers = g.Initializers[2:]
		}), "", `its inputs "fc1.weight", "fc1.bias" hold weights, of which the file has no values: export it`},
		{"a product of matrices without values", with(func(_ *Model, g *Graph) {
			g.Nodes, g.Initializers = []Node{node("MatMul", list("x", "w"), list("y"))}, nil
			g.Inputs = []Value{typed("x", Float32, 2, 6), typed("w", Float32, 6, 3)}
		}), "", `its inputs "w" hold weights, of which the file has no values: export it`},
		{"a product of two matrices that are fed, before weights", with(func(_ *Model, g *Graph) {
			before(g, node("MatMul", list("edges", "points"), list("x")))
			g.Inputs = []Value{typed("edges", Float32, 2, 2), typed("points", Float32, 2, 6)}
		}), "", ""},
		{"a loss that is no output", ownLoss("y"), "", `which must be its first output of floats, and "y" is`},
		{"a loss beside --loss", ownLoss("y"), "mse", "leave --loss out"},
		{"a parameter that is a running statistic, too", with(func(_ *Model, g *Graph) {
			g.Nodes[1] = node("BatchNormalization", list("h", "fc1.bias", "fc1.bias", "fc1.bias", "fc1.bias"),
				list("r"))
		}), "", `"fc1.bias" is a running statistic and a parameter as well`},
		{"for one batch", with(func(_ *Model, g *Graph) {
			g.Inputs[0] = typed("x", Float32, 1, 6)
			g.Initializers[2] = floats("fc2.weight", sequence(3*6), 3, 6)
			g.Initializers = append(g.Initializers, floats("cls", sequence(1), 1, 1))
			g.Nodes[1] = node("Concat", list("h", "cls"), list("r"), "axis", 1)
		}), "", "the file is for a batch of 1 and takes no other: use --batch 1"},
	} {
		_, _, err := Job(c.m, "x", Training{Batch: 2, Loss: c.loss})
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: error %v, want %q", c.what, err, c.want)
		}
	}
	var told []string
	m := inConstants("fc2.weight")
	_, _, err := Job(m, "x", Training{Batch: 2, Note: func(line string) { told = append(told, line) }})
	if err != nil || len(told) != 1 || !strings.HasPrefix(told[0], `Constant nodes are not trained: "fc2.weight"`) {
		t.Errorf("one weight in a constant: told %q, error %v", told, err)
	}
}

// Whole numbers that are cast to floats before anything else is done with them are fed as floats; those that also
// choose rows are not.
func TestCounts(t *testing.T) {
	masked := func(nodes ...Node) *Model {
		m := with(func(_ *Model, g *Graph) {
			g.Inputs = append(g.Inputs, typed("mask", Int64, -1, 5))
			g.Nodes[1] = node("Mul", list("h", "f"), list("r"))
			g.Initializers = append(g.Initializers, whole("one", 1), whole("to", -1, 5))
			g.Nodes = append(nodes, g.Nodes...)
		})
		return m
	}
	cast := node("Cast", list("m"), list("f"), "to", int(Float32))
	for _, c := range []struct {
		what  string
		m     *Model
		holds graph.Holds
		want  string
	}{
		{"cast", masked(node("Identity", list("mask"), list("m")), cast), graph.Counts, ""},
		{"cast twice", masked(node("Cast", list("mask"), list("m"), "to", int(Int32)), cast), graph.Counts, ""},
		{"in another form", masked(node("Unsqueeze", list("mask", "one"), list("u")),
			node("Reshape", list("u", "to"), list("m")), cast), graph.Counts, ""},
		{"turned round", masked(node("Sub", list("one", "mask"), list("m")), cast), graph.Counts, ""},
		{"to truth values", masked(node("Cast", list("mask"), list("m"), "to", int(Bool)), cast), graph.Counts, ""},
		{"in another use, too", masked(node("Cast", list("mask"), list("a"), "to", int(Float32)),
			node("Mod", list("mask", "one"), list("rest")), node("Cast", list("rest"), list("b"), "to", int(Float32)),
			node("Add", list("a", "b"), list("f"))), "", `node "Cast_a" (Cast): it computes with whole numbers that ` +
			`are fed, "mask", and no table says how many`},
	} {
		g, _, err := Job(c.m, "x", Training{Batch: 2})
		if c.want != "" {
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: error %v, want %q", c.what, err, c.want)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", c.what, err)
			continue
		}
		for _, s := range g.Storages {
			if s.Name == "mask" && (s.Role != graph.Input || s.Holds != c.holds || s.Bytes != 2*5*4) {
				t.Errorf("%s: the mask is %+v", c.what, s)
			}
		}
	}
}

// A file for one batch that says the batch in a Reshape takes another batch, also where the other dimension is left
// open; what does not depend on the batch keeps its shape.
func TestReshapedBatch(t *testing.T) {
	m := with(func(_ *Model, g *Graph) {
		g.Inputs[0] = typed("x", Float32, 1, 2, 3)
		g.Initializers = append(g.Initializers, whole("to", 1, -1), floats("m", sequence(20), 4, 5))
		before(g, node("Reshape", list("x", "to"), list("flat")))
		g.Nodes[1].Inputs[0] = "flat"
		g.Nodes[2] = node("Add", list("h", "row"), list("r"))
		before(g, node("Slice", list("wide"), list("row"), "starts", []int64{0}, "ends", []int64{5},
			"axes", []int64{1}))
		before(g, node("Reshape", list("m", "to"), list("wide"))) // [1,20], also where the batch is 4
	})
	g, _, err := Job(m, "x", Training{Batch: 4})
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range g.Tensors {
		if x.Name == "y" && !slices.Equal(x.Shape, graph.Shape{4, 3}) {
			t.Errorf("y has shape %v", x.Shape)
		}
	}
}
