package onnx

import (
	"encoding/binary"
	"math"

	"google.golang.org/protobuf/encoding/protowire"
)

// typed is an input or output of floats with a shape; -1 is the symbol N.
func typed(name string, t Type, dims ...int) Value {
	var shape []byte
	for _, d := range dims {
		dim := putInt(nil, 1, int64(d))
		if d < 0 {
			dim = putText(nil, 2, "N")
		}
		shape = putBytes(shape, 1, dim)
	}
	tensor := putBytes(putInt(nil, 1, int64(t)), 2, shape)
	v := Value{}
	if err := v.decode(putBytes(putText(nil, 1, name), 2, putBytes(nil, 1, tensor))); err != nil {
		panic(err)
	}
	return v
}

func floats(name string, values []float32, dims ...int64) Tensor {
	t := Tensor{Name: name, Type: Float32, Dims: dims}
	for _, v := range values {
		t.Raw = binary.LittleEndian.AppendUint32(t.Raw, math.Float32bits(v))
	}
	return t
}

func whole(name string, values ...int64) Tensor {
	t := Tensor{Name: name, Type: Int64, Dims: []int64{int64(len(values))}}
	for _, v := range values {
		t.Raw = binary.LittleEndian.AppendUint64(t.Raw, uint64(v))
	}
	return t
}

// node makes a node; attributes are a name and a value by turns.
func node(op string, in, out []string, attributes ...any) Node {
	n := Node{Name: op + "_" + out[0], Op: op, Inputs: in, Outputs: out}
	for i := 0; i < len(attributes); i += 2 {
		a := Attribute{Name: attributes[i].(string)}
		switch v := attributes[i+1].(type) {
		case int:
			a.Type, a.Int = AttributeInt, int64(v)
		case float64:
			a.Type, a.Float = AttributeFloat, float32(v)
		case string:
			a.Type, a.String = AttributeString, v
		case []int64:
			a.Type, a.Ints = AttributeInts, v
		case Tensor:
			a.Type, a.Tensor = AttributeTensor, &v
		}
		n.Attributes = append(n.Attributes, a)
	}
	return n
}

// exported are the files of PyTorch in testdata.
var exported = []string{"cnn", "encoder", "encoder17", "lstm", "unet", "gates", "functions", "pieces", "masked",
	"fresh", "tied", "norms", "norms_folded"}

// list writes names the short way.
func list(names ...string) []string { return names }

// perceptron is a network of two layers, with a field that nobody knows.
func perceptron() *Model {
	m := &Model{IR: 8, Producer: "test", Opsets: []Opset{{Version: 17}}, Graph: Graph{
		Name: "perceptron",
		Nodes: []Node{
			node("Gemm", list("x", "fc1.weight", "fc1.bias"), list("h"), "transB", 1),
			node("Relu", list("h"), list("r")),
			node("Gemm", list("r", "fc2.weight", "fc2.bias"), list("y"), "transB", 1),
		},
		Initializers: []Tensor{
			floats("fc1.weight", sequence(5*6), 5, 6), floats("fc1.bias", sequence(5), 5),
			floats("fc2.weight", sequence(3*5), 3, 5), floats("fc2.bias", sequence(3), 3),
		},
		Inputs:  []Value{typed("x", Float32, -1, 6)},
		Outputs: []Value{typed("y", Float32, -1, 3)},
	}}
	for i := range m.Graph.Nodes {
		m.Graph.Nodes[i].index = i
	}
	m.rest = putBytes(nil, 14, putText(putText(nil, 1, "key"), 2, "value"))
	m.Graph.rest = protowire.AppendVarint(protowire.AppendTag(nil, 999, protowire.VarintType), 7)
	return m
}

// sequence is n small numbers of both signs.
func sequence(n int) []float32 {
	v := make([]float32, n)
	for i := range v {
		v[i] = float32((i*7)%11-5) / 16
	}
	return v
}
