package vector

import "math"

// Add writes a + b to y.
func Add(y, a, b []float32) {
	y, b = y[:len(a)], b[:len(a)]
	n := eights(len(a))
	if n > 0 {
		addAVX2(&y[0], &a[0], &b[0], n)
	}
	for i := n; i < len(a); i++ {
		y[i] = a[i] + b[i]
	}
}

// Multiply writes a·b to y.
func Multiply(y, a, b []float32) {
	y, b = y[:len(a)], b[:len(a)]
	n := eights(len(a))
	if n > 0 {
		multiplyAVX2(&y[0], &a[0], &b[0], n)
	}
	for i := n; i < len(a); i++ {
		y[i] = a[i] * b[i]
	}
}

// Scale writes x·factor to y.
func Scale(y, x []float32, factor float32) {
	y = y[:len(x)]
	n := eights(len(x))
	if n > 0 {
		scaleAVX2(&y[0], &x[0], n, factor)
	}
	for i := n; i < len(x); i++ {
		y[i] = x[i] * factor
	}
}

// ReLU writes max(x, 0) to y. NaN stays NaN.
func ReLU(y, x []float32) {
	y = y[:len(x)]
	n := eights(len(x))
	if n > 0 {
		reluAVX2(&y[0], &x[0], n)
	}
	for i := n; i < len(x); i++ {
		y[i] = max(x[i], 0)
	}
}

// KeepPositive writes to dx dy where y is positive, and 0 elsewhere.
func KeepPositive(dx, y, dy []float32) {
	dx, dy = dx[:len(y)], dy[:len(y)]
	n := eights(len(y))
	if n > 0 {
		keepPositiveAVX2(&dx[0], &y[0], &dy[0], n)
	}
	for i := n; i < len(y); i++ {
		kept := uint32(0) // a conditional move, not a branch that random data would mispredict
		if bits := math.Float32bits(dy[i]); y[i] > 0 {
			kept = bits
		}
		dx[i] = math.Float32frombits(kept)
	}
}

// Normalise writes (x-centre)·factor + shift to y.
func Normalise(y, x []float32, centre, factor, shift float32) {
	y = y[:len(x)]
	n := eights(len(x))
	if n > 0 {
		normaliseAVX2(&y[0], &x[0], n, centre, factor, shift)
	}
	for i := n; i < len(x); i++ {
		y[i] = float32((x[i]-centre)*factor) + shift
	}
}

// NormaliseGrad writes factor·(dy - shift - (x-centre)·slope) to dx.
func NormaliseGrad(dx, x, dy []float32, centre, slope, shift, factor float32) {
	dx, dy = dx[:len(x)], dy[:len(x)]
	n := eights(len(x))
	if n > 0 {
		normaliseGradAVX2(&dx[0], &x[0], &dy[0], n, centre, slope, shift, factor)
	}
	for i := n; i < len(x); i++ {
		dx[i] = float32(factor * ((dy[i] - shift) - float32((x[i]-centre)*slope)))
	}
}

// SGD takes rate·dw from w.
func SGD(w, dw []float32, rate float32) {
	w = w[:len(dw)]
	n := eights(len(dw))
	if n > 0 {
		descendAVX2(&w[0], &dw[0], n, rate)
	}
	for i := n; i < len(dw); i++ {
		w[i] -= float32(rate * dw[i])
	}
}

// Momentum is a step of SGD with momentum: m = momentum·m + dw, w -= rate·m.
func Momentum(w, dw, m []float32, rate, momentum float32) {
	w, m = w[:len(dw)], m[:len(dw)]
	n := eights(len(dw))
	if n > 0 {
		momentumAVX2(&w[0], &dw[0], &m[0], n, rate, momentum)
	}
	for i := n; i < len(dw); i++ {
		m[i] = float32(momentum*m[i]) + dw[i]
		w[i] -= float32(rate * m[i])
	}
}

// AdamStep has the constants of a step of Adam: both moments move by the shares Fresh1 and Fresh2 towards the gradient
// and its square, and w falls by Rate·m/(√v·Root + Epsilon).
type AdamStep struct {
	Rate, Root, Epsilon          float32
	Beta1, Fresh1, Beta2, Fresh2 float32
}

// Adam takes a step of Adam.
func Adam(w, dw, m, v []float32, s *AdamStep) {
	w, m, v = w[:len(dw)], m[:len(dw)], v[:len(dw)]
	n := eights(len(dw))
	if n > 0 {
		adamAVX2(&w[0], &dw[0], &m[0], &v[0], n, s.Rate, s.Root, s.Epsilon, s.Beta1, s.Fresh1, s.Beta2, s.Fresh2)
	}
	for i := n; i < len(dw); i++ {
		g := dw[i]
		m[i] = float32(s.Beta1*m[i]) + float32(s.Fresh1*g)
		v[i] = float32(s.Beta2*v[i]) + float32(float32(s.Fresh2*g)*g)
		below := float32(float32(math.Sqrt(float64(v[i])))*s.Root) + s.Epsilon
		w[i] -= float32(s.Rate*m[i]) / below
	}
}
