package vector

import "math"

// unary writes to y what a function makes of each element of x.
func unary(y, x []float32, assembly func(y, x *float32, n int), of func(float64) float64) {
	y = y[:len(x)]
	n := eights(len(x))
	if n > 0 {
		assembly(&y[0], &x[0], n)
	}
	for i := n; i < len(x); i++ {
		y[i] = float32(of(float64(x[i])))
	}
}

// Exp writes to y the exponentials of x.
func Exp(y, x []float32) { unary(y, x, expAVX2, exp) }

// Sigmoid writes 1/(1+exp(-x)) to y.
func Sigmoid(y, x []float32) { unary(y, x, sigmoidAVX2, sigmoid) }

// Tanh writes to y the hyperbolic tangents of x.
func Tanh(y, x []float32) { unary(y, x, tanhAVX2, tanh) }

// Erf writes to y the error function at x.
func Erf(y, x []float32) { unary(y, x, erfAVX2, erf) }

// GELU writes x·Φ(x) to y, Φ being the distribution function of the standard normal distribution.
func GELU(y, x []float32) { unary(y, x, geluAVX2, gelu) }

// GELUGrad writes to dx the slope of GELU at x, Φ(x) + x·φ(x), times dy.
func GELUGrad(dx, x, dy []float32) {
	dx, dy = dx[:len(x)], dy[:len(x)]
	n := eights(len(x))
	if n > 0 {
		geluGradAVX2(&dx[0], &x[0], &dy[0], n)
	}
	for i := n; i < len(x); i++ {
		dx[i] = float32(geluGrad(float64(x[i]), float64(dy[i])))
	}
}

// ExpSum writes exp(factor·(x-top)) to y, and returns the sum of these before they are rounded.
func ExpSum(y, x []float32, factor, top float64) float64 {
	var s [16]float64
	y = y[:len(x)]
	n := sixteens(len(x))
	if n > 0 {
		expSumAVX2(&y[0], &x[0], n, factor, top, &s)
	}
	for i := n; i < len(x); i++ {
		e := exp(factor * (float64(x[i]) - top))
		y[i] = float32(e)
		s[i%16] += e
	}
	return total(&s)
}

// Divide divides y by a number, in float64.
func Divide(y []float32, by float64) {
	n := eights(len(y))
	if n > 0 {
		divideAVX2(&y[0], n, by)
	}
	for i := n; i < len(y); i++ {
		y[i] = float32(float64(y[i]) / by)
	}
}

// Largest is the largest element of x that is not NaN, and -Inf if there is none.
func Largest(x []float32) float32 {
	low := float32(math.Inf(-1))
	most := [8]float32{low, low, low, low, low, low, low, low}
	n := eights(len(x))
	if n > 0 {
		largestAVX2(&x[0], n, &most)
	}
	for _, v := range x[n:] {
		if v > most[0] {
			most[0] = v
		}
	}
	for _, v := range most[1:] {
		if v > most[0] {
			most[0] = v
		}
	}
	return most[0]
}

// Sum is the sum of x.
func Sum(x []float32) float64 {
	var s [16]float64
	n := sixteens(len(x))
	if n > 0 {
		sumAVX2(&x[0], n, &s)
	}
	for i := n; i < len(x); i++ {
		s[i%16] += float64(x[i])
	}
	return total(&s)
}

// SumSquares is the sum of (x-centre)².
func SumSquares(x []float32, centre float64) float64 {
	var s [16]float64
	n := sixteens(len(x))
	if n > 0 {
		sumSquaresAVX2(&x[0], n, centre, &s)
	}
	for i := n; i < len(x); i++ {
		d := float64(x[i]) - centre
		s[i%16] += float64(d * d)
	}
	return total(&s)
}

// SumProducts is the sum of y and that of (x-centre)·y.
func SumProducts(x, y []float32, centre float64) (sum, product float64) {
	var s, p [16]float64
	y = y[:len(x)]
	n := sixteens(len(x))
	if n > 0 {
		sumProductsAVX2(&x[0], &y[0], n, centre, &s, &p)
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
