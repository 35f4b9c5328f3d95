package vector

import (
	"math"
	"unsafe"
)

// Float is the type of an element.
type Float interface{ ~float32 | ~float64 }

// isNarrow reports whether T is of 32 bits.
func isNarrow[T Float]() bool {
	var zero T
	return unsafe.Sizeof(zero) == 4
}

// eights is how many of n elements the assembly takes that takes eight at once.
func eights[T Float](n int) int {
	if !wide || !isNarrow[T]() {
		return 0
	}
	return n &^ 7
}

// sixteens is how many of n elements the assembly takes that takes sixteen at once.
func sixteens[T Float](n int) int { return eights[T](n) &^ 15 }

// start is the address of the first element, for the assembly.
func start[T Float](x []T) *float32 { return (*float32)(unsafe.Pointer(unsafe.SliceData(x))) }

// function is one of a number, for float32 and for float64.
type function struct{ narrow, double func(float64) float64 }

func choose[T Float](f function) func(float64) float64 {
	if isNarrow[T]() {
		return f.narrow
	}
	return f.double
}

// rest writes to y what a function makes of each element of x.
func rest[T Float](y, x []T, f function) {
	y = y[:len(x)]
	at := choose[T](f)
	for i, v := range x {
		y[i] = T(at(float64(v)))
	}
}

// Exp writes to y the exponentials of x.
func Exp[T Float](y, x []T) {
	n := eights[T](min(len(x), len(y)))
	if n > 0 {
		expAVX2(start(y), start(x), n)
	}
	rest(y[n:], x[n:], function{exp, math.Exp})
}

// Sigmoid writes 1/(1+exp(-x)) to y.
func Sigmoid[T Float](y, x []T) {
	n := eights[T](min(len(x), len(y)))
	if n > 0 {
		sigmoidAVX2(start(y), start(x), n)
	}
	rest(y[n:], x[n:], function{sigmoid, sigmoidDouble})
}

// Tanh writes to y the hyperbolic tangents of x.
func Tanh[T Float](y, x []T) {
	n := eights[T](min(len(x), len(y)))
	if n > 0 {
		tanhAVX2(start(y), start(x), n)
	}
	rest(y[n:], x[n:], function{tanh, math.Tanh})
}

// Erf writes to y the error function at x.
func Erf[T Float](y, x []T) {
	n := eights[T](min(len(x), len(y)))
	if n > 0 {
		erfAVX2(start(y), start(x), n)
	}
	rest(y[n:], x[n:], function{erf, math.Erf})
}

// GELU writes x·Φ(x) to y, Φ being the distribution function of the standard normal distribution.
func GELU[T Float](y, x []T) {
	n := eights[T](min(len(x), len(y)))
	if n > 0 {
		geluAVX2(start(y), start(x), n)
	}
	rest(y[n:], x[n:], function{gelu, geluDouble})
}

// GELUGrad writes to dx the slope of GELU at x, Φ(x) + x·φ(x), times dy.
func GELUGrad[T Float](dx, x, dy []T) {
	dx, dy = dx[:len(x)], dy[:len(x)]
	n := eights[T](len(x))
	if n > 0 {
		geluGradAVX2(start(dx), start(x), start(dy), n)
	}
	slope := choose[T](function{geluSlope, geluSlopeDouble})
	for i := n; i < len(x); i++ {
		dx[i] = T(float64(dy[i]) * slope(float64(x[i])))
	}
}

// ExpSum writes exp(factor·(x-top)) to y unless it is nil, and returns the sum of these before they are rounded.
func ExpSum[T Float](y, x []T, factor, top float64) float64 {
	var s [16]float64
	var part [256]T // as many as strands or a multiple
	for first := 0; first < len(x); first += len(part) {
		from := x[first:min(first+len(part), len(x))]
		to := part[:len(from)]
		if y != nil {
			to = y[first:][:len(from)]
		}
		expSum(to, from, factor, top, &s)
	}
	return total(&s)
}

// expSum writes exp(factor·(x-top)) to y, and adds it to strands.
func expSum[T Float](y, x []T, factor, top float64, s *[16]float64) {
	n := sixteens[T](len(x))
	if n > 0 {
		expSumAVX2(start(y), start(x), n, factor, top, s)
	}
	for i, exp := n, choose[T](function{exp, math.Exp}); i < len(x); i++ {
		e := exp(factor * (float64(x[i]) - top))
		y[i] = T(e)
		s[i%16] += e
	}
}

// Divide divides y by a number, in float64.
func Divide[T Float](y []T, by float64) {
	n := eights[T](len(y))
	if n > 0 {
		divideAVX2(start(y), n, by)
	}
	for i := n; i < len(y); i++ {
		y[i] = T(float64(y[i]) / by)
	}
}

// Largest is the largest element of x that is not NaN, and -Inf if there is none.
func Largest[T Float](x []T) T {
	low := float32(math.Inf(-1))
	strands := [8]float32{low, low, low, low, low, low, low, low}
	n := eights[T](len(x))
	if n > 0 {
		largestAVX2(start(x), n, &strands)
	}
	most := T(low)
	for _, v := range strands {
		if T(v) > most {
			most = T(v)
		}
	}
	for _, v := range x[n:] {
		if v > most {
			most = v
		}
	}
	return most
}

// Sum is the sum of x.
func Sum[T Float](x []T) float64 {
	var s [16]float64
	n := sixteens[T](len(x))
	if n > 0 {
		sumAVX2(start(x), n, &s)
	}
	for i := n; i < len(x); i++ {
		s[i%16] += float64(x[i])
	}
	return total(&s)
}

// SumSquares is the sum of (x-centre)².
func SumSquares[T Float](x []T, centre float64) float64 {
	var s [16]float64
	n := sixteens[T](len(x))
	if n > 0 {
		sumSquaresAVX2(start(x), n, centre, &s)
	}
	for i := n; i < len(x); i++ {
		d := float64(x[i]) - centre
		s[i%16] += float64(d * d)
	}
	return total(&s)
}

// SumProducts is the sum of y and that of (x-centre)·y.
func SumProducts[T Float](x, y []T, centre float64) (sum, product float64) {
	var s, p [16]float64
	y = y[:len(x)]
	n := sixteens[T](len(x))
	if n > 0 {
		sumProductsAVX2(start(x), start(y), n, centre, &s, &p)
	}
	for i := n; i < len(x); i++ {
		v := float64(y[i])
		s[i%16] += v
		p[i%16] += float64((float64(x[i]) - centre) * v)
	}
	return total(&s), total(&p)
}

// total adds up strands, always in the same order.
func total(s *[16]float64) float64 {
	for n := 8; n > 0; n /= 2 {
		for i := range n {
			s[i] += s[i+n]
		}
	}
	return s[0]
}
