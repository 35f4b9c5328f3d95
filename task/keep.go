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

// File is what is kept of a graph that was trained for a number of iterations: its persistent storages.
func File(g *graph.Graph, iterations int, contents map[graph.StorageID][]float32) weights.File {
	file := weights.File{Metadata: map[string]string{"model": g.Name, "iterations": fmt.Sprint(iterations)}}
	saved := make(map[graph.StorageID]bool)
	for _, t := range g.Tensors {
		if content, ok := contents[t.Storage]; ok && !saved[t.Storage] && t.Bytes() == g.Storages[t.Storage].Bytes {
			saved[t.Storage] = true
			file.Tensors = append(file.Tensors, weights.Tensor{Name: g.Storages[t.Storage].Name, Shape: t.Shape, Data: content})
		}
	}
	return file
}
