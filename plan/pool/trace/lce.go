package trace

import "math/bits"

// extender tells how far two parts of a sequence go on alike, by hashes of its prefixes: polynomials modulo the prime
// 2^61-1. A collision makes an answer too large; callers must check what they conclude from it.
type extender struct {
	of     []int32
	prefix []uint64 // hash of the first i
	power  []uint64 // of the base
}

const (
	prime = 1<<61 - 1
	base  = 0x1f0a3b5c7d9e2467 % prime
)

func multiply(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	sum := lo&prime + (lo>>61 | hi<<3)
	if sum >= prime {
		sum -= prime
	}
	return sum
}

func newExtender(of []int32) *extender {
	e := &extender{of: of, prefix: make([]uint64, len(of)+1), power: make([]uint64, len(of)+1)}
	e.power[0] = 1
	for i, x := range of {
		e.prefix[i+1] = (multiply(e.prefix[i], base) + uint64(x) + 1) % prime
		e.power[i+1] = multiply(e.power[i], base)
	}
	return e
}

// equal compares n elements from i and from j on.
func (e *extender) equal(i, j, n int) bool {
	hash := func(at int) uint64 {
		return (e.prefix[at+n] + prime - multiply(e.prefix[at], e.power[n])) % prime
	}
	return hash(i) == hash(j)
}

// forward is how many elements from i and from j on are equal.
func (e *extender) forward(i, j int) int {
	return gallop(len(e.of)-max(i, j), func(have, more int) bool { return e.equal(i+have, j+have, more) })
}

// backward is how many elements before i and before j are equal.
func (e *extender) backward(i, j int) int {
	return gallop(min(i, j), func(have, more int) bool { return e.equal(i-have-more, j-have-more, more) })
}

// gallop is the largest number up to limit that is reached by steps which hold, where a step holds if all smaller ones
// do. It takes time logarithmic in the number.
func gallop(limit int, holds func(have, more int) bool) int {
	have, step := 0, 1
	for have+step <= limit && holds(have, step) {
		have += step
		step *= 2
	}
	for ; step > 0; step /= 2 {
		if have+step <= limit && holds(have, step) {
			have += step
		}
	}
	return have
}
