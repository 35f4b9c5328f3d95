package weights

import (
	"fmt"
	"math"
	"unicode/utf8"

	"tensile/graph"
)

// Tensor is a named array of float32, dense and in row-major order. A scalar has an empty shape; an extent may be 0.
type Tensor struct {
	Name  string
	Shape graph.Shape
	Data  []float32 // The elements, in row-major order.
}

// File is the content of a safetensors file, as float32. Read returns tensors sorted by name; Write takes them in any
// order.
type File struct {
	Tensors  []Tensor
	Metadata map[string]string // free text; left out of the file when empty

	// Note is a line on what else was in the file that was read, and was not taken. "": nothing like this was.
	Note string
}

const (
	metadataKey  = "__metadata__"
	dtype        = "F32"
	elementBytes = int64(graph.ElementBytes)

	largestElement = 8           // bytes of any type
	lengthBytes    = 8           // of the header's length
	maxHeader      = 100_000_000 // bytes, by the format's reference implementation
	maxRank        = 64          // as in NumPy
)

// check reports what makes the file impossible to write.
func (f File) check() error {
	seen := make(map[string]bool, len(f.Tensors))
	for _, t := range f.Tensors {
		switch {
		case t.Name == metadataKey:
			return fmt.Errorf("a tensor may not be called %s: rename it", metadataKey)
		case !utf8.ValidString(t.Name):
			return fmt.Errorf("tensor %s: the name is not UTF-8: rename it", quote(t.Name))
		case seen[t.Name]:
			return fmt.Errorf("tensor %s is there twice: rename one", quote(t.Name))
		}
		seen[t.Name] = true
		elements, err := count(t.Shape)
		if err != nil {
			return fmt.Errorf("tensor %s: %w", quote(t.Name), err)
		}
		if elements != int64(len(t.Data)) {
			return fmt.Errorf("tensor %s: shape %v has %d elements, the data %d: pass all of the tensor",
				quote(t.Name), t.Shape, elements, len(t.Data))
		}
	}
	for key, value := range f.Metadata {
		if !utf8.ValidString(key) || !utf8.ValidString(value) {
			return fmt.Errorf("metadata is not UTF-8: write such text in another form, like base64")
		}
	}
	return nil
}

// count returns the number of elements of a shape, or an error if their bytes cannot be counted.
func count(shape graph.Shape) (int64, error) {
	if len(shape) > maxRank {
		return 0, fmt.Errorf("the shape has %d dimensions, want at most %d: reshape the tensor", len(shape), maxRank)
	}
	n := int64(1)
	for _, extent := range shape {
		if extent < 0 {
			return 0, fmt.Errorf("shape %v has a negative extent: pass the tensor's real shape", shape)
		}
		if extent > 0 && n > math.MaxInt64/largestElement/int64(extent) {
			return 0, fmt.Errorf("shape %v has more bytes than can be counted: pass the tensor's real shape", shape)
		}
		n *= int64(extent)
	}
	return n, nil
}

// quote quotes a name for a message and cuts it short.
func quote(name string) string { return fmt.Sprintf("%.80q", name) }
