package device

import (
	"unsafe"

	"tensile/graph"
)

// Memory is the bytes of a storage in the byte order of the machine, aligned for any type of elements.
type Memory []byte

// NewMemory returns memory of a size, full of zeros.
func NewMemory(size graph.Bytes) Memory {
	words := make([]int64, (size+7)/8)
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), size)
}

// Float32 returns the memory as float32 elements.
func (m Memory) Float32() []float32 {
	return unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(m))), len(m)/4)
}

// Int64 returns the memory as int64 elements.
func (m Memory) Int64() []int64 {
	return unsafe.Slice((*int64)(unsafe.Pointer(unsafe.SliceData(m))), len(m)/8)
}
