package weights

import (
	"encoding/binary"
	"math"
)

// Type is a type of elements, by its name in safetensors files, such as F32 or I64.
type Type string

// element is how the elements of a type lie in a file, little-endian. Floats have float, whole
// numbers have whole.
type element struct {
	bytes int64
	float func(b []byte) float32
	whole func(b []byte) int64
}

var order = binary.LittleEndian

// types are those that are read. Floats of 64 bits are rounded to the nearest of 32.
var types = map[Type]element{
	"F32":  {4, func(b []byte) float32 { return math.Float32frombits(order.Uint32(b)) }, nil},
	"F64":  {8, func(b []byte) float32 { return float32(math.Float64frombits(order.Uint64(b))) }, nil},
	"F16":  {2, func(b []byte) float32 { return half(order.Uint16(b)) }, nil},
	"BF16": {2, func(b []byte) float32 { return math.Float32frombits(uint32(order.Uint16(b)) << 16) }, nil},
	"I64":  {8, nil, func(b []byte) int64 { return int64(order.Uint64(b)) }},
	"I32":  {4, nil, func(b []byte) int64 { return int64(int32(order.Uint32(b))) }},
	"I16":  {2, nil, func(b []byte) int64 { return int64(int16(order.Uint16(b))) }},
	"I8":   {1, nil, func(b []byte) int64 { return int64(int8(b[0])) }},
	"U64":  {8, nil, func(b []byte) int64 { return int64(min(order.Uint64(b), math.MaxInt64)) }},
	"U32":  {4, nil, func(b []byte) int64 { return int64(order.Uint32(b)) }},
	"U16":  {2, nil, func(b []byte) int64 { return int64(order.Uint16(b)) }},
	"U8":   {1, nil, func(b []byte) int64 { return int64(b[0]) }},
	"BOOL": {1, nil, func(b []byte) int64 { return int64(b[0]) }},
}

// Bytes is the size of an element, 0 of a type that is not read.
func (t Type) Bytes() int64 { return types[t].bytes }

// IsInteger reports whether elements are whole numbers, of which Ints makes int64; Floats makes float32 of all others.
func (t Type) IsInteger() bool { return types[t].whole != nil }

// Floats converts elements of floats, as many as to has: wider ones are rounded, narrower ones are the same numbers.
func (t Type) Floats(to []float32, from []byte) {
	e := types[t]
	for i := range to {
		to[i] = e.float(from[int64(i)*e.bytes:])
	}
}

// Ints converts elements of whole numbers, as many as to has. What is too large for an int64 becomes the largest.
func (t Type) Ints(to []int64, from []byte) {
	e := types[t]
	for i := range to {
		to[i] = e.whole(from[int64(i)*e.bytes:])
	}
}

// Append appends floats as elements of a type of floats, each rounded to the nearest number that it has, to the even
// one of two. What is beyond its largest becomes infinite.
func (t Type) Append(to []byte, from []float32) []byte {
	for _, v := range from {
		switch t {
		case "F64":
			to = order.AppendUint64(to, math.Float64bits(float64(v)))
		case "F16":
			to = order.AppendUint16(to, narrow(v))
		case "BF16":
			to = order.AppendUint16(to, brain(v))
		default:
			to = order.AppendUint32(to, math.Float32bits(v))
		}
	}
	return to
}

// brain rounds to the upper 16 bits of a float32.
func brain(v float32) uint16 {
	b := math.Float32bits(v)
	if v != v {
		return uint16(b>>16) | 64 // quiet: the bits that are left may all be zero
	}
	return uint16((b + 1<<15 - 1 + b>>16&1) >> 16)
}

// narrow rounds to a number of 16 bits, 5 of them the exponent.
func narrow(v float32) uint16 {
	b := math.Float32bits(v)
	sign, magnitude := uint16(b>>16)&(1<<15), b&(1<<31-1)
	const rebias = (127 - 15) << 23
	switch {
	case v != v:
		return sign | 31<<10 | 1<<9
	case magnitude >= rebias+31<<23-1<<12: // half way from the largest number to what would follow
		return sign | 31<<10
	case magnitude < rebias+1<<23: // a multiple of 2^-24, of which there are 2^23 from 1/2 to 1
		return sign | uint16(math.Float32bits(math.Float32frombits(magnitude)+0.5)-math.Float32bits(0.5))
	}
	return sign | uint16((magnitude-rebias+1<<12-1+magnitude>>13&1)>>13)
}

// half widens a number of 16 bits, 5 of them the exponent.
func half(b uint16) float32 {
	sign, exponent, fraction := uint32(b>>15)<<31, uint32(b>>10)&31, uint32(b)&1023
	switch exponent {
	case 0:
		magnitude := float32(fraction) / (1 << 24)
		return math.Float32frombits(math.Float32bits(magnitude) | sign)
	case 31:
		return math.Float32frombits(sign | 255<<23 | fraction<<13)
	}
	return math.Float32frombits(sign | (exponent+127-15)<<23 | fraction<<13)
}
