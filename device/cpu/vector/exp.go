package vector

import "math"

// The coefficients below, the lowest power first, interpolate at Chebyshev's points. Each product and each sum rounds
// once: the conversions to float64 keep a compiler from fusing them.
var (
	// ExpQ: exp(r) = 1 + r + r²·Q(r) for |r| ≤ ln(2)/2, to 1e-11.
	ExpQ = [...]float64{0.5, 0.16666666718997508523, 0.041666666718980846436, 0.0083332984837548860262,
		0.0013888854049614818824, 0.00019899273958649360158, 0.000024859578222625294832}
	// TailH: the upper tail of the normal distribution at w ≥ 0 is exp(-w²/2)·H(t)/(1+w) with t = (w-3.5)/(w+3.5), to
	// 3e-10. The form is that of Shepherd and Laframboise (Mathematics of Computation 36, 1981).
	TailH = [...]float64{0.47855319136298055608, -0.097712569195946029576, 0.0007868309197606767581,
		0.038047616590977148648, -0.03025599064792238638, 0.010380203780488425104, 0.00026265412822530705877,
		-0.0014240497897517639353, 0.0001480342598104429546, 0.00021039771037127980994,
		-0.000025839411500126768338, -0.00003453935540915917543, 2.259593998822881455e-6, 4.0805467584630222229e-6}
	// ErfP: erf(x) = x·P(x²) for |x| < 1, to 1e-12.
	ErfP = [...]float64{1.1283791670946767327, -0.37612638889635306771, 0.11283791308604581452,
		-0.026866133235095591563, 0.005223783477189248115, -0.00085426379970872296266, 0.0001195656256820732956,
		-0.000013909340021874598594, 1.0589380641075019183e-6}
)

// Magic is a number that leaves the integer nearest to a small one in the low bits of their sum.
const Magic = 3 << 51

// polynomial is that of x with these coefficients.
func polynomial(x float64, c []float64) float64 {
	p := c[len(c)-1]
	for i := len(c) - 2; i >= 0; i-- {
		p = float64(p*x) + c[i]
	}
	return p
}

// exponential splits the exponential of x, which counts as at least -700 and at most 700: it is s·p + s.
func exponential(x float64) (s, p float64) {
	if x < -700 {
		x = -700
	}
	if x > 700 {
		x = 700
	}
	t := float64(x*math.Log2E) + Magic
	r := x - float64((t-Magic)*math.Ln2)
	p = float64(float64(r*r)*polynomial(r, ExpQ[:])) + r
	return math.Float64frombits(math.Float64bits(t)<<52 + math.Float64bits(1)), p
}

func exp(x float64) float64 {
	s, p := exponential(x)
	return float64(s*p) + s
}

func sigmoid(x float64) float64 { return 1 / (1 + exp(-x)) }

func tanh(x float64) float64 {
	s, p := exponential(x + x)
	e := float64(s*p) + (s - 1)
	return e / (e + 2)
}

// tail is the upper tail of the normal distribution at w ≥ 0, and exp(-w²/2).
func tail(w float64) (q, e float64) {
	if w > 37 {
		w = 37
	}
	e = exp(float64(w*w) * -0.5)
	return float64(polynomial((w-3.5)/(w+3.5), TailH[:])/(w+1)) * e, e
}

// normal is the distribution function of the normal distribution at x, and exp(-x²/2).
func normal(x float64) (y, e float64) {
	q, e := tail(math.Abs(x))
	if math.Signbit(x) {
		return q, e
	}
	return 1 - q, e
}

func erf(x float64) float64 {
	w := math.Abs(x)
	if w < 1 {
		return float64(x * polynomial(float64(x*x), ErfP[:]))
	}
	q, _ := tail(float64(w * math.Sqrt2))
	return math.Copysign(1-(q+q), x)
}

func gelu(x float64) float64 {
	y, _ := normal(x)
	return float64(x * y)
}

// geluSlope is the slope of GELU.
func geluSlope(x float64) float64 {
	y, e := normal(x)
	return y + float64(x*float64(e*(1/math.Sqrt(2*math.Pi))))
}

// The functions for float64 are those of package math.

func sigmoidDouble(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

func geluDouble(x float64) float64 { return x * math.Erfc(-x/math.Sqrt2) / 2 }

func geluSlopeDouble(x float64) float64 {
	return math.Erfc(-x/math.Sqrt2)/2 + x*math.Exp(-x*x/2)/math.Sqrt(2*math.Pi)
}
