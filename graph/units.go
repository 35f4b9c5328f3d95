package graph

import (
	"fmt"
	"math"
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

// roundUp rounds up to the unit of a storage's size.
func roundUp(size Bytes) Bytes { return (size + ElementBytes - 1) / ElementBytes * ElementBytes }

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

// sizes are the units of amounts as people write them, longest name first.
var sizes = []struct {
	name  string
	bytes float64
}{
	{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40},
	{"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}, {"B", 1}, {"", 1},
}

// ParseBytes reads an amount of at least one byte with a binary or decimal unit or none, such as 512MiB, 2.5GB or 1024.
func ParseBytes(text string) (Bytes, error) {
	for _, unit := range sizes {
		number, found := strings.CutSuffix(text, unit.name)
		if !found {
			continue
		}
		v, err := strconv.ParseFloat(number, 64)
		if err != nil || !(v*unit.bytes >= 1) || v*unit.bytes > math.MaxInt64/4 {
			break
		}
		return Bytes(v * unit.bytes), nil
	}
	return 0, fmt.Errorf("%q: give a size such as 512MiB or 2GB", text)
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

// StorageBytes is the size of a storage for a dense tensor of this shape and type.
func StorageBytes(s Shape, d DType) Bytes { return roundUp(Bytes(s.Elements()) * d.Bytes()) }

// Bytes is the size of a dense float32 tensor of this shape.
func (s Shape) Bytes() Bytes { return Bytes(s.Elements()) * ElementBytes }
