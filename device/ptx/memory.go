package ptx

// Memory is what the addresses of a kernel mean.
type Memory interface {
	// Find returns the allocation that an address lies in, nil if there is none.
	Find(address uint64) *Allocation
}

// Allocation is a range of the device's memory.
type Allocation struct {
	Address uint64
	Bytes   []byte
	Written []uint64 // a bit per byte, which has been written since the allocation; reading others is an error
}

// Range is the bytes from Begin to before End.
type Range struct{ Begin, End uint64 }

// Footprint is what one launch of a kernel did.
type Footprint struct {
	Reads, Writes []Range // sorted, disjoint, none touching the next
	Instructions  int64   // of all threads
}
