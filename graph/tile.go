package graph

import (
	"fmt"
	"math/bits"
)

// TileBytes bounds what is computed at once of the gradient of a parameter, in bytes of float32.
const TileBytes = 16 * MiB

// TileRows returns how many rows, entries of the first dimension, of a gradient of this shape are computed at once: all
// of them up to TileBytes, else as many as fit into it, a multiple of 16 if there are that many, the last tile having
// what is left. It follows from the shape alone. Kernels that make the gradient of a linear layer's weights call the
// matrix product once for each of these tiles, so that a tile that is made by itself (Begin and Length) has the bits
// that it has in the whole.
func (s Shape) TileRows() int {
	if len(s) == 0 || s.Bytes() <= TileBytes {
		return s.rows()
	}
	rows := int(TileBytes / (s.Bytes() / Bytes(s.rows())))
	if rows >= 16 {
		rows -= rows % 16
	}
	return max(1, rows)
}

// rows is the extent of the first dimension, 1 for a scalar.
func (s Shape) rows() int {
	if len(s) == 0 {
		return 1
	}
	return s[0]
}

// rows returns how many rows an op makes of n: all, or Length of them from Begin on.
func (a Attrs) rows(n int) (int, error) {
	if a.Begin == 0 && a.Length == 0 {
		return n, nil
	}
	if a.Begin < 0 || a.Length < 1 || a.Begin > n-a.Length {
		return n, fmt.Errorf("%d rows from %d on do not lie within %d", a.Length, a.Begin, n)
	}
	return a.Length, nil
}

// part returns the part of a quantity that belongs to the rows that an op makes of n.
func part[T ~int64](a Attrs, quantity T, n int) T {
	if a.Length == 0 {
		return quantity
	}
	high, low := bits.Mul64(uint64(quantity), uint64(a.Length))
	share, _ := bits.Div64(high, low, uint64(n))
	return T(share)
}
