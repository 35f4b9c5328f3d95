package onnx

import (
	"math"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"tensile/graph"
)

// with is the perceptron with changes, whose nodes and values are written as they are.
func with(of func(m *Model, g *Graph)) *Model {
	m := perceptron()
	of(m, &m.Graph)
	return m
}

// before puts a node in front of the others.
func before(g *Graph, n Node) { g.Nodes = append([]Node{n}, g.Nodes...) }

// What an operator cannot take is one line that names the node: too few inputs, constants of other sizes than it wants,
// shapes that a small file claims and nobody can hold.
func TestHostileNodes(t *testing.T) {
	huge := whole("dims", 1<<36) // of a constant whose elements are alike: none of them is in the file
	for _, c := range []struct {
		what string
		m    *Model
		want string
	}{
		{"no output", with(func(_ *Model, g *Graph) { g.Nodes = append(g.Nodes, Node{Op: "Relu", Inputs: list("y")}) }),
			"it has no output"},
		{"no input", with(func(_ *Model, g *Graph) { g.Nodes[1].Inputs = nil }), "its input 0 is missing"},
		{"no input of a Shape", with(func(_ *Model, g *Graph) { before(g, node("Shape", nil, list("s"))) }),
			"it has 0 inputs, want 1"},
		{"an input that is left out of a Shape", with(func(_ *Model, g *Graph) {
			before(g, node("Identity", list("", "fc2.bias"), list("s")))
		}), "node \"Identity_s\""},
		{"fewer inputs than a fold wants", with(func(_ *Model, g *Graph) {
			g.Initializers = append(g.Initializers, whole("i", 1))
			before(g, node("Where", list("i", "i"), list("s")))
		}), "it has 2 inputs, want 3"},
		{"places without end", with(func(_ *Model, g *Graph) {
			g.Initializers = append(g.Initializers, huge)
			before(g, node("Reshape", list("fc1.bias", "places"), list("s")))
			before(g, node("ConstantOfShape", list("dims"), list("places"), "value", whole("", 1)))
		}), "it makes a constant of 68719476736 elements"},
		{"a product of extents beyond 64 bits", with(func(_ *Model, g *Graph) {
			g.Initializers = append(g.Initializers, whole("a", 1<<39, 1), whole("b", 1, 1<<39))
			before(g, node("Add", list("ca", "cb"), list("s")))
			before(g, node("ConstantOfShape", list("a"), list("ca")))
			before(g, node("ConstantOfShape", list("b"), list("cb")))
		}), "more than 1099511627776 elements"},
		{"a number of no elements", with(func(_ *Model, g *Graph) {
			g.Initializers = append(g.Initializers, floats("none", nil, 0))
			g.Nodes[1] = node("Clip", list("h", "none"), list("r"))
		}), "it takes a constant of 0 elements, want 1"},
		{"a weight of no elements", with(func(_ *Model, g *Graph) {
			g.Initializers[0] = floats("fc1.weight", nil, 0, 6)
		}), "there is nothing in it"},
		{"a dimension cut twice", with(func(_ *Model, g *Graph) {
			g.Nodes[1] = node("Slice", list("h"), list("r"), "starts", []int64{3, 3}, "ends", []int64{5, 5}, "axes",
				[]int64{1, 1})
		}), "it cuts dimension 1 of [2 5] twice"},
		{"a step farther than any dimension", with(func(_ *Model, g *Graph) {
			g.Initializers = append(g.Initializers, whole("s", 0), whole("e", 5), whole("a", 1),
				whole("p", math.MinInt64))
			g.Nodes[1] = node("Slice", list("h", "s", "e", "a", "p"), list("r"))
		}), "it takes no element of dimension 1 of [2 5]"},
		{"a dimension without end", with(func(_ *Model, g *Graph) {
			g.Nodes[1] = node("Unsqueeze", list("h"), list("r"), "axes", slices.Repeat([]int64{0}, 100))
		}), "dimensions, of which there may be 64"},
		{"a permutation of other dimensions", with(func(_ *Model, g *Graph) {
			g.Nodes[1] = node("Transpose", list("h"), list("r"), "perm", []int64{0, 7})
		}), "is no permutation of 2 dimensions"},
		{"parts that do not add up", with(func(_ *Model, g *Graph) {
			g.Nodes[1] = node("Split", list("h"), list("r", "q"), "axis", 1, "split", []int64{-3, 8})
		}), "it splits 5 into [-3 8]"},
		{"constants that do not join", with(func(_ *Model, g *Graph) {
			g.Initializers = append(g.Initializers, whole("a", 1, 2), whole("b", 1))
			before(g, node("Concat", list("a2", "b"), list("s"), "axis", 0))
			before(g, node("Unsqueeze", list("a"), list("a2"), "axes", []int64{0}))
		}), "it joins shapes [1 2] and [1]"},
		{"a scale of other channels", with(func(_ *Model, g *Graph) {
			g.Nodes[1] = node("BatchNormalization", list("h", "fc2.bias", "fc1.bias", "fc1.bias", "fc1.bias"),
				list("r"))
		}), "its input 1 has shape [3], and its images have 5 channels"},
		{"a scale wider than what it scales", with(func(_ *Model, g *Graph) {
			g.Nodes[1] = node("LayerNormalization", list("h", "fc2.bias"), list("r"))
		}), "shapes [[3] [5]] do not broadcast"},
		{"a bias larger than the product", with(func(_ *Model, g *Graph) {
			g.Initializers[1] = floats("fc1.bias", sequence(20), 4, 5)
		}), "does not broadcast to [2 5]"},
		{"an unknown domain", with(func(_ *Model, g *Graph) { g.Nodes[1].Domain = "com.example" }),
			`com.example.Relu in node "Relu_r" (Relu)`},
		{"an axis outside", with(func(_ *Model, g *Graph) {
			g.Nodes[1] = node("Softmax", list("h"), list("r"), "axis", 5)
		}), "axis 5 is none of 2 dimensions"},
		{"an attribute of another kind", with(func(_ *Model, g *Graph) {
			g.Nodes[1] = node("Transpose", list("h"), list("r"), "perm", 3.5)
		}), `its attribute "perm" is of another kind than Transpose has`},
	} {
		err := c.m.check()
		if err == nil {
			_, err = Import(c.m, "x", Options{Batch: 2, Train: true}) // Job leaves out what the loss does not need
		}
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: error %v, want one with %q", c.what, err, c.want)
		}
	}
}

// Odd files that the format allows are read as it says.
func TestOddFiles(t *testing.T) {
	for _, c := range []struct {
		what  string
		m     *Model
		check func(g *graph.Graph, contents map[string][]float32) bool
	}{
		{"an initializer that is also an input is its default, and is trained", with(func(_ *Model, g *Graph) {
			g.Inputs = append(g.Inputs, typed("fc1.weight", Float32, 5, 6))
		}), func(g *graph.Graph, contents map[string][]float32) bool {
			return g.Parameters() == 53 && len(contents["fc1.weight"]) == 30
		}},
		{"nodes of one name", with(func(_ *Model, g *Graph) {
			for i := range g.Nodes {
				g.Nodes[i].Name = "same"
			}
		}), nil},
		{"numbers that are none stay", with(func(_ *Model, g *Graph) {
			g.Initializers[3] = floats("fc2.bias", []float32{float32(math.NaN()), float32(math.Inf(1)), 0}, 3)
		}), func(_ *graph.Graph, contents map[string][]float32) bool {
			b := contents["fc2.bias"]
			return len(b) == 3 && b[0] != b[0] && math.IsInf(float64(b[1]), 1)
		}},
		{"a constant of no elements that nothing trains", with(func(_ *Model, g *Graph) {
			g.Initializers = append(g.Initializers, whole("none"))
			before(g, node("Concat", list("none", "none"), list("s"), "axis", 0))
		}), nil},
		{"a batch that was folded into a Reshape", with(func(_ *Model, g *Graph) {
			g.Inputs[0] = typed("x", Float32, 7, 6)
			g.Initializers = append(g.Initializers, whole("to", 7, 5))
			g.Nodes[1] = node("Reshape", list("h", "to"), list("r"))
		}), func(g *graph.Graph, _ map[string][]float32) bool {
			for _, t := range g.Tensors {
				if t.Name == "labels" {
					return slices.Equal(t.Shape, graph.Shape{2})
				}
			}
			return false
		}},
		{"a weight that two nodes share", with(func(_ *Model, g *Graph) {
			g.Nodes = slices.Insert(g.Nodes, 2, node("Gemm", list("r", "square"), list("r2"), "transB", 1),
				node("Gemm", list("r2", "square"), list("r3"), "transB", 1))
			g.Initializers = append(g.Initializers, floats("square", sequence(25), 5, 5))
			g.Nodes[4].Inputs[0] = "r3"
		}), func(g *graph.Graph, _ map[string][]float32) bool { return g.Parameters() == 53+25 }},
	} {
		text := c.m.Encode()
		m, err := Decode(text)
		if err == nil {
			err = m.check()
		}
		if err != nil {
			t.Errorf("%s: %v", c.what, err)
			continue
		}
		g, contents, err := Job(m, "x", Training{Batch: 2})
		if err != nil || c.check != nil && !c.check(g, contents) {
			t.Errorf("%s: %v, parameters %v", c.what, err, contents)
		}
	}
}

// A file whose opset is absent, or whose elements stand in the wrong place, is refused.
func TestDamagedFiles(t *testing.T) {
	for _, c := range []struct {
		what string
		text []byte
		want string
	}{
		{"no opset", with(func(m *Model, _ *Graph) { m.Opsets = nil }).Encode(), "operator set 0"},
		{"an initializer twice", with(func(_ *Model, g *Graph) {
			g.Initializers = append(g.Initializers, g.Initializers[0])
		}).Encode(), `its name "fc1.weight" is empty or taken`},
		{"an input twice", with(func(_ *Model, g *Graph) { g.Inputs = append(g.Inputs, g.Inputs[0]) }).Encode(),
			`its name "x" is empty or taken`},
		{"raw data of another length", with(func(_ *Model, g *Graph) {
			g.Initializers[1].Raw = g.Initializers[1].Raw[:7]
		}).Encode(), "takes 20 bytes, and the file has 7"},
		{"elements in two fields", with(func(_ *Model, g *Graph) {
			g.Initializers[1].rest = putBytes(nil, 4, make([]byte, 20))
		}).Encode(), "its elements stand in two fields, 9 and 4"},
		{"a string in place of a number", protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType),
			[]byte("8")), "field 1 has wire type 2, want 0"},
		{"a length beyond the file", protowire.AppendVarint(protowire.AppendTag(nil, 7, protowire.BytesType), 1<<40),
			"no ONNX model, or a damaged one"},
	} {
		m, err := Decode(c.text)
		if err == nil {
			err = m.check()
		}
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: error %v, want one with %q", c.what, err, c.want)
		}
	}
}

// A node that is told a list without end is one short line.
func TestLongLists(t *testing.T) {
	many := slices.Repeat([]int64{1}, 1<<20)
	for _, c := range []struct {
		n    Node
		want string
	}{
		{node("Pad", list("h", "many"), list("r")), "its input 1 has 1048576 numbers, of which there may be 65536"},
		{node("Tile", list("h", "many"), list("r")), "its input 1 has 1048576 numbers, of which there may be 65536"},
		{node("Slice", list("h"), list("r"), "starts", many, "ends", many[1:]), `node "Slice_r" (Slice): starts [1 1`},
	} {
		m := with(func(_ *Model, g *Graph) {
			g.Initializers = append(g.Initializers, whole("many", many...))
			g.Nodes[1] = c.n
		})
		_, _, err := Job(m, "x", Training{Batch: 2})
		if err == nil || !strings.Contains(err.Error(), c.want) || len(err.Error()) > 500 {
			t.Errorf("%s: error %.600v, want a short one with %q", c.n.Op, err, c.want)
		}
	}
}
