package onnx

import (
	"encoding/binary"
	"math"
	"path/filepath"
	"slices"
	"strings"
)

// Is reports whether a path names an ONNX file.
func Is(path string) bool { return strings.EqualFold(filepath.Ext(path), ".onnx") }

// Replace gives an initializer the content that was trained. Where the file has a ConstantOfShape in the place of a
// weight, an initializer takes its place. Names that the model does not have, such as those of an optimizer's state,
// change nothing.
func (m *Model) Replace(name string, content []float32) {
	g := &m.Graph
	for i := range g.Initializers {
		if t := &g.Initializers[i]; t.Name == name && t.size() == int64(len(content)) {
			t.Type, t.Raw = Float32, bytesOf(content)
			return
		}
	}
	at := slices.IndexFunc(g.Nodes, func(n Node) bool {
		return n.Op == "ConstantOfShape" && len(n.Outputs) == 1 && n.Outputs[0] == name
	})
	if at < 0 {
		return
	}
	for i := range g.Initializers {
		if t := &g.Initializers[i]; t.Name == g.Nodes[at].Inputs[0] && t.Type == Int64 {
			dims, err := t.Ints()
			n := Tensor{Name: name, Type: Float32, Dims: dims, Raw: bytesOf(content)}
			if err == nil && n.check() == nil {
				g.Nodes = slices.Delete(g.Nodes, at, at+1)
				g.Initializers = append(g.Initializers, n)
			}
			return
		}
	}
}

// size is the number of elements, -1 of a shape that has none.
func (t *Tensor) size() int64 {
	n, err := t.elements()
	if err != nil {
		return -1
	}
	return n
}

func bytesOf(content []float32) []byte {
	raw := make([]byte, 0, 4*len(content))
	for _, v := range content {
		raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(v))
	}
	return raw
}
