package onnx

import (
	"fmt"

	"tensile/data/weights"
)

// Model is an ONNX file. Fields of messages that are not named here are kept in rest, as they were read.
type Model struct {
	IR       int64
	Producer string
	Opsets   []Opset
	Graph    Graph

	notes []string // what was changed on reading, a line each
	rest  []byte
}

// Opset says which version of a domain's operators a model uses. The domain of ONNX itself is "".
type Opset struct {
	Domain  string
	Version int64

	rest []byte
}

// Graph is a network: nodes, and where their values come from.
type Graph struct {
	Name            string
	Nodes           []Node
	Initializers    []Tensor
	Inputs, Outputs []Value
	Values          []Value // types of values between nodes, as far as the file says them; not read

	signature string // what PyTorch's exporter says of the module's parameters and buffers; "": nothing
	rest      []byte
}

// Node is an operator. An empty name of an input or output is one that is left out.
type Node struct {
	Name, Op, Domain string
	Inputs, Outputs  []string
	Attributes       []Attribute

	index int    // Index in the file.
	fx    string // the call of PyTorch that the node is of, with its arguments; "": the file does not say
	rules string // names of the exporter's rules that made the node of others
	rest  []byte
}

// String names a node for messages.
func (n *Node) String() string {
	if n.Name != "" {
		return fmt.Sprintf("node %.80q (%.40s)", n.Name, n.Op)
	}
	return fmt.Sprintf("node %d (%.40s)", n.index, n.Op)
}

// AttributeType says which field of an attribute holds its value.
type AttributeType int64

// The types of attributes that operators here have.
const (
	AttributeFloat   AttributeType = 1
	AttributeInt     AttributeType = 2
	AttributeString  AttributeType = 3
	AttributeTensor  AttributeType = 4
	AttributeFloats  AttributeType = 6
	AttributeInts    AttributeType = 7
	AttributeStrings AttributeType = 8
)

// Attribute is a setting of a node.
type Attribute struct {
	Name    string
	Type    AttributeType
	Float   float32
	Int     int64
	String  string
	Tensor  *Tensor // nil: it has none
	Floats  []float32
	Ints    []int64
	Strings []string

	refers string // the attribute of a function's caller that it is; "": it stands for itself
	rest   []byte
}

// Type is the type of a tensor's elements.
type Type int32

// The types that are read.
const (
	Float32  Type = 1
	Uint8    Type = 2
	Int8     Type = 3
	Uint16   Type = 4
	Int16    Type = 5
	Int32    Type = 6
	Int64    Type = 7
	Bool     Type = 9
	Float16  Type = 10
	Float64  Type = 11
	Uint32   Type = 12
	Uint64   Type = 13
	BFloat16 Type = 16
)

var types = map[Type]struct {
	name string
	size int
}{
	Float32: {"float", 4}, Uint8: {"uint8", 1}, Int8: {"int8", 1}, Uint16: {"uint16", 2}, Int16: {"int16", 2},
	Int32: {"int32", 4}, Int64: {"int64", 8}, Bool: {"bool", 1}, Float16: {"float16", 2}, Float64: {"double", 8},
	Uint32: {"uint32", 4}, Uint64: {"uint64", 8}, BFloat16: {"bfloat16", 2},
}

// floating are the types of floats, as files of weights have them.
var floating = map[Type]weights.Type{Float32: "F32", Float64: "F64", Float16: "F16", BFloat16: "BF16"}

func (t Type) float() bool { return floating[t] != "" }

// String is the name of the type in ONNX.
func (t Type) String() string {
	if known, ok := types[t]; ok {
		return known.name
	}
	return fmt.Sprintf("type %d", int32(t))
}

// Tensor is an array with a name.
type Tensor struct {
	Name string
	Dims []int64
	Type Type
	Raw  []byte // the elements, little-endian and row by row

	stands   standing          // what it is in the module that the file was exported of
	external map[string]string // Location of Raw until it is loaded; nil: Raw is in memory.
	rest     []byte
}

// standing is what an initializer of floats is in a module.
type standing int

const (
	unsaid    standing = iota // the file does not say: what is differentiated is a parameter
	parameter                 // a parameter, of a single number perhaps
	buffer                    // a buffer or a number of the exporter's own, which is not trained
)

// Value is what is known of a value of a graph: its name and type.
type Value struct {
	Name string
	Type Type
	Dims []Dim // nil if the file does not say
	kept []byte
}

// Dim is an extent of a value.
type Dim struct {
	Extent int64
	Symbol string // "" and Extent 0: the file does not say
}

// Version is that of ONNX's own operators, 0 if the model does not say.
func (m *Model) Version() int64 {
	for _, o := range m.Opsets {
		if o.Domain == "" || o.Domain == "ai.onnx" {
			return o.Version
		}
	}
	return 0
}
