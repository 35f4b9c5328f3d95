package task

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"

	"tensile/graph"
	"tensile/weights"
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

// File is what is kept of a task that was trained for a number of iterations: its persistent storages, and as metadata
// what they came from. step is the number of updates, one an iteration, and optimizer what made them, as --optimizer
// names it.
func (t Task) File(iterations int, contents map[graph.StorageID][]float32) weights.File {
	g := t.Graph
	file := weights.File{Metadata: map[string]string{
		"model": g.Name, "iterations": fmt.Sprint(iterations), "step": fmt.Sprint(iterations),
		"seed": fmt.Sprint(t.Seed), "optimizer": optimizer(g)}}
	saved := make(map[graph.StorageID]bool)
	for _, t := range g.Tensors {
		if content, ok := contents[t.Storage]; ok && !saved[t.Storage] && t.Bytes() == g.Storages[t.Storage].Bytes {
			saved[t.Storage] = true
			file.Tensors = append(file.Tensors, weights.Tensor{Name: g.Storages[t.Storage].Name, Shape: t.Shape,
				Data: content})
		}
	}
	for _, s := range g.Storages { // no tensor is all of it
		if content, ok := contents[s.ID]; ok && !saved[s.ID] {
			file.Tensors = append(file.Tensors, weights.Tensor{Name: s.Name, Shape: graph.Shape{len(content)},
				Data: content})
		}
	}
	return file
}

// optimizer names what updates a graph's parameters; "" if nothing does.
func optimizer(g *graph.Graph) string {
	for _, op := range g.Ops {
		switch op.Kind {
		case graph.SGD, graph.Adam:
			return string(op.Kind)
		case graph.Momentum:
			return "momentum"
		}
	}
	return ""
}
