package graph

import (
	"fmt"
	"strconv"
	"strings"
)

// Bytes is an amount of memory.
type Bytes int64

const (
	KiB Bytes = 1 << 10
	MiB Bytes = 1 << 20
	GiB Bytes = 1 << 30
)

// ElementBytes is the size of a float32, and the unit of a storage's size.
const ElementBytes Bytes = 4

// String prints the amount with a binary unit and at most two decimals.
func (b Bytes) String() string {
	units := []struct {
		size Bytes
		name string
	}{{GiB, "GiB"}, {MiB, "MiB"}, {KiB, "KiB"}}
	for _, u := range units {
		if b >= u.size || -b >= u.size {
			text := strconv.FormatFloat(float64(b)/float64(u.size), 'f', 2, 64)
			return strings.TrimSuffix(strings.TrimRight(text, "0"), ".") + u.name
		}
	}
	return fmt.Sprintf("%dB", int64(b))
}

// Shape is the extent of a tensor along each dimension, outermost first. Images are N, C, H, W.
type Shape []int

// Elements is the product of the extents; 1 for a scalar.
func (s Shape) Elements() int {
	n := 1
	for _, d := range s {
		n *= d
	}
	return n
}

// Bytes is the size of a dense float32 tensor of this shape.
func (s Shape) Bytes() Bytes { return Bytes(s.Elements()) * ElementBytes }
