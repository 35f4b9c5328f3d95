package onnx

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
)

// MostInside is how many bytes tensors may have to be within the file of a model: a message of protobuf has less than
// twice as many.
const MostInside = 1 << 30

// Files returns the bytes of a model, and, if its initializers have more than so many bytes, those of a file at a
// location beside it in which they lie, in parts.
func (m *Model) Files(location string, most int64) (text []byte, beside [][]byte) {
	const small, line = 1 << 10, 64 // bytes of what stays, and to which the others are aligned
	all, at := int64(0), int64(0)
	for i := range m.Graph.Initializers {
		all += int64(len(m.Graph.Initializers[i].Raw))
	}
	if all <= most {
		return m.Encode(), nil
	}
	apart := *m
	apart.Graph.Initializers = slices.Clone(m.Graph.Initializers)
	for i := range apart.Graph.Initializers {
		t := &apart.Graph.Initializers[i]
		if len(t.Raw) < small {
			continue
		}
		n := int64(len(t.Raw))
		gap := -n & (line - 1)
		t.external = map[string]string{"location": location, "offset": fmt.Sprint(at), "length": fmt.Sprint(n)}
		beside = append(beside, t.Raw, make([]byte, gap))
		at += n + gap
	}
	return apart.Encode(), beside
}

// Encode returns the bytes of a model: what is named in Model, and all other fields as they were read. Tensors are
// within the file, but those that lie elsewhere.
func (m *Model) Encode() []byte {
	b := putInt(nil, 1, m.IR)
	b = putText(b, 2, m.Producer)
	for _, o := range m.Opsets {
		b = putBytes(b, 8, append(putInt(putText(nil, 1, o.Domain), 2, o.Version), o.rest...))
	}
	return append(putBytes(b, 7, m.Graph.encode()), m.rest...)
}

func (g *Graph) encode() []byte {
	var b []byte
	for i := range g.Nodes {
		b = putBytes(b, 1, g.Nodes[i].encode())
	}
	b = putText(b, 2, g.Name)
	for i := range g.Initializers {
		b = putBytes(b, 5, g.Initializers[i].encode())
	}
	for _, list := range []struct {
		number protowire.Number
		values []Value
	}{{11, g.Inputs}, {12, g.Outputs}, {13, g.Values}} {
		for _, v := range list.values {
			b = putBytes(b, list.number, v.kept)
		}
	}
	return append(b, g.rest...)
}

func (n *Node) encode() []byte {
	var b []byte
	for _, in := range n.Inputs {
		b = putBytes(b, 1, []byte(in)) // an empty one counts
	}
	for _, out := range n.Outputs {
		b = putBytes(b, 2, []byte(out))
	}
	b = putText(putText(b, 3, n.Name), 4, n.Op)
	for i := range n.Attributes {
		b = putBytes(b, 5, n.Attributes[i].encode())
	}
	return append(putText(b, 7, n.Domain), n.rest...)
}

func (a *Attribute) encode() []byte {
	b := putText(nil, 1, a.Name)
	if a.Float != 0 || a.Type == AttributeFloat {
		b = protowire.AppendFixed32(protowire.AppendTag(b, 2, protowire.Fixed32Type), math.Float32bits(a.Float))
	}
	if a.Int != 0 || a.Type == AttributeInt {
		b = protowire.AppendVarint(protowire.AppendTag(b, 3, protowire.VarintType), uint64(a.Int))
	}
	if a.String != "" || a.Type == AttributeString {
		b = putBytes(b, 4, []byte(a.String))
	}
	if a.Tensor != nil {
		b = putBytes(b, 5, a.Tensor.encode())
	}
	if len(a.Floats) > 0 {
		var packed []byte
		for _, v := range a.Floats {
			packed = binary.LittleEndian.AppendUint32(packed, math.Float32bits(v))
		}
		b = putBytes(b, 7, packed)
	}
	b = putInts(b, 8, a.Ints)
	for _, s := range a.Strings {
		b = putBytes(b, 9, []byte(s))
	}
	return append(putText(putInt(b, 20, int64(a.Type)), 21, a.refers), a.rest...)
}

func (t *Tensor) encode() []byte {
	b := putInts(nil, 1, t.Dims)
	b = putInt(b, 2, int64(t.Type))
	b = putText(b, 8, t.Name)
	switch {
	case t.external != nil:
		for _, key := range []string{"location", "offset", "length"} {
			b = putBytes(b, 13, putText(putText(nil, 1, key), 2, t.external[key]))
		}
		b = putInt(b, 14, 1)
	case len(t.Raw) > 0:
		b = putBytes(b, 9, t.Raw)
	}
	return append(b, t.rest...)
}

func putInt(b []byte, number protowire.Number, v int64) []byte {
	if v == 0 {
		return b
	}
	return protowire.AppendVarint(protowire.AppendTag(b, number, protowire.VarintType), uint64(v))
}

func putInts(b []byte, number protowire.Number, v []int64) []byte {
	if len(v) == 0 {
		return b
	}
	var packed []byte
	for _, i := range v {
		packed = protowire.AppendVarint(packed, uint64(i))
	}
	return putBytes(b, number, packed)
}

func putText(b []byte, number protowire.Number, s string) []byte {
	if s == "" {
		return b
	}
	return putBytes(b, number, []byte(s))
}

func putBytes(b []byte, number protowire.Number, v []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, number, protowire.BytesType), v)
}
