package vector

import "math"

// Add writes a + b to y.
func Add[T Float](y, a, b []T) {
	y, b = y[:len(a)], b[:len(a)]
	n := eights[T](len(a))
	if n > 0 {
		addAVX2(start(y), start(a), start(b), n)
	}
	for i := n; i < len(a); i++ {
		y[i] = a[i] + b[i]
	}
}

// Multiply writes a·b to y.
func Multiply[T Float](y, a, b []T) {
	y, b = y[:len(a)], b[:len(a)]
	n := eights[T](len(a))
	if n > 0 {
		multiplyAVX2(start(y), start(a), start(b), n)
	}
	for i := n; i < len(a); i++ {
		y[i] = a[i] * b[i]
	}
}

// Scale writes x·factor to y.
func Scale[T Float](y, x []T, factor T) {
	y = y[:len(x)]
	n := eights[T](len(x))
	if n > 0 {
		scaleAVX2(start(y), start(x), n, float32(factor))
	}
	for i := n; i < len(x); i++ {
		y[i] = x[i] * factor
	}
}

// ReLU writes max(x, 0) to y. NaN stays NaN.
func ReLU[T Float](y, x []T) {
	y = y[:len(x)]
	n := eights[T](len(x))
	if n > 0 {
		reluAVX2(start(y), start(x), n)
	}
	for i := n; i < len(x); i++ {
		y[i] = max(x[i], 0)
	}
}

// KeepPositive writes to dx dy where y is positive, and 0 elsewhere.
func KeepPositive[T Float](dx, y, dy []T) {
	dx, dy = dx[:len(y)], dy[:len(y)]
	n := eights[T](len(y))
	if n > 0 {
		keepPositiveAVX2(start(dx), start(y), start(dy), n)
	}
	for i := n; i < len(y); i++ {
		dx[i] = KeepIf(y[i] > 0, dy[i])
	}
}

// KeepIf is v or zero, without a branch that random data would mispredict: integers are chosen by a conditional move.
func KeepIf[T Float](keep bool, v T) T {
	bits, kept := math.Float64bits(float64(v)), uint64(0)
	if keep {
		kept = bits
	}
	return T(math.Float64frombits(kept))
}

// Normalise writes (x-centre)·factor + shift to y.
func Normalise[T Float](y, x []T, centre, factor, shift T) {
	y = y[:len(x)]
	n := eights[T](len(x))
	if n > 0 {
		normaliseAVX2(start(y), start(x), n, float32(centre), float32(factor), float32(shift))
	}
	for i := n; i < len(x); i++ {
		y[i] = T((x[i]-centre)*factor) + shift
	}
}

// NormaliseGrad writes factor·(dy - shift - (x-centre)·slope) to dx.
func NormaliseGrad[T Float](dx, x, dy []T, centre, slope, shift, factor T) {
	dx, dy = dx[:len(x)], dy[:len(x)]
	n := eights[T](len(x))
	if n > 0 {
		normaliseGradAVX2(start(dx), start(x), start(dy), n,
			&[4]float32{float32(centre), float32(slope), float32(shift), float32(factor)})
	}
	for i := n; i < len(x); i++ {
		dx[i] = T(factor * ((dy[i] - shift) - T((x[i]-centre)*slope)))
	}
}

// SGD takes rate·dw from w.
func SGD[T Float](w, dw []T, rate T) {
	w = w[:len(dw)]
	n := eights[T](len(dw))
	if n > 0 {
		descendAVX2(start(w), start(dw), n, float32(rate))
	}
	for i := n; i < len(dw); i++ {
		w[i] -= T(rate * dw[i])
	}
}

// Momentum is a step of SGD with momentum: m = momentum·m + dw, w -= rate·m.
func Momentum[T Float](w, dw, m []T, rate, momentum T) {
	w, m = w[:len(dw)], m[:len(dw)]
	n := eights[T](len(dw))
	if n > 0 {
		momentumAVX2(start(w), start(dw), start(m), n, float32(rate), float32(momentum))
	}
	for i := n; i < len(dw); i++ {
		m[i] = T(momentum*m[i]) + dw[i]
		w[i] -= T(rate * m[i])
	}
}

// AdamStep has the constants of a step of Adam: both moments move by the shares Fresh1 and Fresh2 towards the gradient
// and its square, and w falls by Rate·m/(√v·Root + Epsilon).
type AdamStep[T Float] struct {
	Rate, Root, Epsilon          T
	Beta1, Fresh1, Beta2, Fresh2 T
}

// Adam takes a step of Adam.
func Adam[T Float](w, dw, m, v []T, s *AdamStep[T]) {
	w, m, v = w[:len(dw)], m[:len(dw)], v[:len(dw)]
	n := eights[T](len(dw))
	if n > 0 {
		adamAVX2(start(w), start(dw), start(m), start(v), n, &[7]float32{float32(s.Rate), float32(s.Root),
			float32(s.Epsilon), float32(s.Beta1), float32(s.Fresh1), float32(s.Beta2), float32(s.Fresh2)})
	}
	for i := n; i < len(dw); i++ {
		g := dw[i]
		m[i] = T(s.Beta1*m[i]) + T(s.Fresh1*g)
		v[i] = T(s.Beta2*v[i]) + T(T(s.Fresh2*g)*g)
		below := T(T(math.Sqrt(float64(v[i])))*s.Root) + s.Epsilon
		w[i] -= T(s.Rate*m[i]) / below
	}
}
