package task

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"slices"

	"tensile/data/weights"
	"tensile/graph"
)

// Digest identifies the content of a storage to the bit: the SHA-256 of its elements in little-endian order, in
// hexadecimal.
func Digest(content []float32) string {
	sum := sha256.New()
	var chunk [4096]byte
	for len(content) > 0 {
		n := min(len(content), len(chunk)/4)
		for i, v := range content[:n] {
			binary.LittleEndian.PutUint32(chunk[4*i:], math.Float32bits(v))
		}
		sum.Write(chunk[:4*n])
		content = content[n:]
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// File is what is kept of a task that was trained for a number of iterations: its persistent storages, parts of one
// thing in one piece, and as metadata what they came from. step is the number of updates, one an iteration, and
// optimizer what made them, as --optimizer names it.
func (t Task) File(iterations int, contents map[graph.StorageID][]float32) weights.File {
	g := t.Graph
	file := weights.File{Metadata: map[string]string{
		"model": g.Name, "iterations": fmt.Sprint(iterations), "step": fmt.Sprint(iterations),
		"seed": fmt.Sprint(t.Seed), "optimizer": optimizer(g)}}
	shapes := shapesOf(g)
	for _, s := range g.Storages {
		if content, ok := contents[s.ID]; ok && s.PartOf == "" {
			file.Tensors = append(file.Tensors, tensorOf(s.Name, content, shapes[s.ID]))
		}
	}
	for _, parts := range g.Parts() {
		if whole, ok := join(g, parts, contents, shapes); ok {
			file.Tensors = append(file.Tensors, whole)
		}
	}
	return file
}

// shapesOf returns the shapes of storages of which a tensor shows all.
func shapesOf(g *graph.Graph) map[graph.StorageID]graph.Shape {
	shapes := make(map[graph.StorageID]graph.Shape)
	for _, t := range g.Tensors {
		if _, seen := shapes[t.Storage]; !seen && t.Bytes() == g.Storages[t.Storage].Bytes {
			shapes[t.Storage] = t.Shape
		}
	}
	return shapes
}

// tensorOf returns a tensor of this shape, or of one dimension if the shape has other elements.
func tensorOf(name string, content []float32, shape graph.Shape) weights.Tensor {
	if shape.Elements() != len(content) {
		shape = graph.Shape{len(content)}
	}
	return weights.Tensor{Name: name, Shape: shape, Data: content}
}

// join returns the tensor that storages are the parts of, one after the other along the first dimension; none if a part
// is not kept.
func join(g *graph.Graph, parts []graph.StorageID, contents map[graph.StorageID][]float32,
	shapes map[graph.StorageID]graph.Shape) (weights.Tensor, bool) {
	var all []float32
	for _, s := range parts {
		content, ok := contents[s]
		if !ok {
			return weights.Tensor{}, false
		}
		all = append(all, content...)
	}
	shape := slices.Clone(shapes[parts[0]])
	if len(shape) > 0 {
		shape[0] = len(all) / max(1, shape.Elements()/shape[0])
	}
	return tensorOf(g.Storages[parts[0]].PartOf, all, shape), true
}

// IsFrozen reports whether all learning rates are 0, as float32, so that training changes no parameter.
func (t Task) IsFrozen() bool {
	updates := 0
	for _, op := range t.Graph.Ops {
		if optimizerOf(op.Kind) == "" {
			continue
		}
		if updates++; float32(op.Attrs.LearningRate) != 0 {
			return false
		}
	}
	return updates > 0
}

// optimizer names what updates a graph's parameters; "" if nothing does.
func optimizer(g *graph.Graph) string {
	for _, op := range g.Ops {
		if name := optimizerOf(op.Kind); name != "" {
			return name
		}
	}
	return ""
}

// optimizerOf is the name of an optimizer by the kind of its updates; "" of other ops.
func optimizerOf(kind graph.Kind) string {
	switch kind {
	case graph.SGD, graph.Adam:
		return string(kind)
	case graph.Momentum:
		return "momentum"
	}
	return ""
}
