package gemm

import "math"

// fused is a*b + c, rounded once.
func fused[T Float](a, b, c T) T {
	if single[T]() {
		return T(fused32(float32(a), float32(b), float32(c)))
	}
	return T(math.FMA(float64(a), float64(b), float64(c)))
}

// exact32 is a*b + c, rounded once. The product is exact in float64 and the sum is rounded there once: a second time by
// the conversion, which only where the first has come to lie between two float32, or is below those of full precision,
// makes a difference. There the first is rounded to an odd number instead (Boldo, Melquiond: Emulation of FMA and
// correctly rounded sums, IEEE Transactions on Computers 57, 2008).
func exact32(a, b, c float32) float32 {
	p, d := float64(a)*float64(b), float64(c)
	s := p + d
	bits := math.Float64bits(s)
	const half = 1 << 28 // of the last place of a float32
	if bits&(2*half-1) != half && math.Abs(s) >= 0x1p-126 || math.IsInf(s, 0) || s != s {
		return float32(s)
	}
	t := s - p
	rest := (p - (s - t)) + (d - t) // what s lacks
	if rest != 0 && bits&1 == 0 {
		if rest > 0 == (s > 0) {
			bits++
		} else {
			bits--
		}
	}
	return float32(math.Float64frombits(bits))
}
