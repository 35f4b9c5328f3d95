package graph

import (
	"fmt"
	"slices"
)

// DType is the type of a tensor's elements. The zero value is float32, which the JSON form leaves out.
type DType string

const (
	Float32 DType = ""
	Float64 DType = "float64"
	Int64   DType = "int64" // tokens, which tables are indexed by
	Uint8   DType = "uint8" // positions in the windows of a pooling
)

var dtypeBytes = map[DType]Bytes{Float32: 4, Float64: 8, Int64: 8, Uint8: 1}

// Bytes is the size of an element, 0 of an unknown type.
func (d DType) Bytes() Bytes { return dtypeBytes[d] }

func (d DType) String() string {
	if d == Float32 {
		return "float32"
	}
	return string(d)
}

// UnmarshalText reads a type by its name.
func (d *DType) UnmarshalText(text []byte) error {
	if *d = DType(text); *d == "float32" {
		*d = Float32
	}
	if d.Bytes() == 0 {
		return fmt.Errorf("unknown dtype %q: float32, float64, int64, uint8", text)
	}
	return nil
}

// isFloat reports whether ops compute with the type.
func (d DType) isFloat() bool { return d == Float32 || d == Float64 }

// alike is the rule of types of most kinds: all operands and outputs are of one floating type.
func alike(in []DType, outputs int) ([]DType, error) {
	out := make([]DType, outputs)
	for i, d := range in {
		if d != in[0] || !d.isFloat() {
			return nil, fmt.Errorf("input %d is of type %v, want %v", i, d, floatOf(in[0]))
		}
	}
	for i := range out {
		out[i] = in[0]
	}
	return out, nil
}

// floatOf returns a floating type as it is, and float32 for others.
func floatOf(d DType) DType {
	if d.isFloat() {
		return d
	}
	return Float32
}

// indexedBy is the rule of types of kinds one of whose inputs holds indices of a type. The other inputs and the outputs
// are alike.
func indexedBy(index int, dtype DType) func(in []DType, outputs int) ([]DType, error) {
	return func(in []DType, outputs int) ([]DType, error) {
		if in[index] != dtype {
			return nil, fmt.Errorf("input %d is of type %v, want %v", index, in[index], dtype)
		}
		return alike(slices.Delete(slices.Clone(in), index, index+1), outputs)
	}
}
