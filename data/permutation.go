package data

import (
	"math"
	"math/bits"
)

// rounds of the Feistel network. Four make a good permutation of a large domain; small ones want more.
const rounds = 8

// permutation is a keyed bijection of [0, n) that is computed point by point, without a table.
//
// It is a Feistel network on pairs (left, right) of numbers below side, where side*side is the first square not below
// n. A point that lands outside of [0, n) is sent through the network again until it is inside, which ends because
// every orbit returns to its start; less than one point in 1+sqrt(n)/2 needs that.
type permutation struct {
	n, side, key uint64
}

func newPermutation(n int, key uint64) permutation {
	side := uint64(math.Sqrt(float64(n)))
	for side*side < uint64(n) {
		side++
	}
	return permutation{n: uint64(n), side: side, key: key}
}

// image returns where the permutation sends i, which must be in [0, n).
func (p permutation) image(i int) int {
	x := uint64(i)
	for {
		if x = p.network(x); x < p.n {
			return int(x)
		}
	}
}

func (p permutation) network(x uint64) uint64 {
	left, right := x/p.side, x%p.side
	for round := range uint64(rounds) {
		shift, _ := bits.Mul64(mix(p.key+round<<56+right), p.side) // uniform below side
		left += shift
		if left >= p.side {
			left -= p.side
		}
		left, right = right, left
	}
	return left*p.side + right
}
