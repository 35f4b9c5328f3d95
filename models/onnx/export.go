package onnx

import (
	"math"
	"path/filepath"
	"slices"
	"strings"
)

// IsFile reports whether a path names an ONNX file.
func IsFile(path string) bool { return strings.EqualFold(filepath.Ext(path), ".onnx") }

// Replace gives an initializer the content that was trained, in its own type: other operands of what reads it have that
// too. Numbers are rounded to the nearest that the type has, to the even one of two; beyond its largest they are
// infinite. Where the file has a ConstantOfShape instead of a weight, an initializer takes its place. Names that
// the model does not have, such as those of an optimizer's state, change nothing.
func (m *Model) Replace(name string, content []float32) {
	g := &m.Graph
	for i := range g.Initializers {
		if t := &g.Initializers[i]; t.Name == name && t.Type.float() && t.size() == int64(len(content)) {
			t.fill(content)
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
			n := Tensor{Name: name, Type: Float32, Dims: dims}
			for _, a := range g.Nodes[at].Attributes {
				if a.Name == "value" && a.Tensor != nil && a.Tensor.Type.float() {
					n.Type = a.Tensor.Type
				}
			}
			n.fill(content)
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

// fill gives a tensor of floats other ones. Those that are the same as a float32 keep their bytes: a double has more
// digits.
func (t *Tensor) fill(content []float32) {
	raw := floating[t.Type].Append(make([]byte, 0, len(content)*types[t.Type].size), content)
	if was, err := t.Floats(); err == nil && len(was) == len(content) {
		size := types[t.Type].size
		for i, v := range was {
			if math.Float32bits(v) == math.Float32bits(content[i]) {
				copy(raw[i*size:], t.Raw[i*size:(i+1)*size])
			}
		}
	}
	t.Raw = raw
}
