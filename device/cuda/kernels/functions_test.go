package kernels

import (
	"encoding/binary"
	"math"
	"slices"
	"testing"

	"tensile/internal/long"
)

// functions are the functions of src/functions.h that testdata/functions.c has kernels of, with the bound of their
// relative error from least to most, where the results are normal numbers.
var functions = []struct {
	kernel      string
	bytes       int // of an element
	of          func(x float64) float64
	least, most float64
	bound       float64
}{
	{"of_exp32", 4, math.Exp, -87, 88.7, 1.5e-7},
	{"of_tanh32", 4, math.Tanh, -30, 30, 3e-7},
	{"of_tanh32", 4, math.Tanh, -1e-3, 1e-3, 3e-7},
	{"of_sigmoid32", 4, func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }, -87, 100, 3e-7},
	{"of_log1pexp32", 4, func(x float64) float64 { return math.Log1p(math.Exp(x)) }, -87, 0, 4e-7},
	{"of_gauss32", 4, func(x float64) float64 { return math.Exp(-x * x / 2) }, -13, 13, 2e-7},
	{"of_normal_cdf32", 4, func(x float64) float64 { return math.Erfc(-x/math.Sqrt2) / 2 }, -13, 13, 5e-7},
	{"of_exp64", 8, math.Exp, -700, 700, 1e-15},
	{"of_log64", 8, math.Log, 2, 1e300, 1e-15},
	{"of_power64", 8, func(x float64) float64 { return math.Pow(x, -0.37) }, 1e-50, 1e50, 1e-13},
}

// The functions are as exact as their comments say.
func TestFunctions(t *testing.T) {
	h := startHost(t)
	n := long.Or(20_001, 200_001)
	for _, f := range functions {
		xs := make([]float64, n)
		for i := range xs {
			share := float64(i) / float64(n-1)
			xs[i] = f.least + share*(f.most-f.least)
			if f.least > 0 { // spread over the exponents
				xs[i] = f.least * math.Pow(f.most/f.least, share)
			}
		}
		worst, at := 0.0, 0.0
		for i, got := range h.apply(t, f.kernel, f.bytes, xs) {
			want := f.of(xs[i])
			if e := math.Abs(got-want) / math.Abs(want); !(e <= worst) && want != 0 {
				worst, at = e, xs[i]
			}
		}
		t.Logf("%s from %v to %v: %.2g, at %v", f.kernel, f.least, f.most, worst, at)
		if !(worst <= f.bound) {
			t.Errorf("%s has an error of %v at %v, more than %v", f.kernel, worst, at, f.bound)
		}
	}
}

// What is beyond the range of a function, and NaN.
func TestFunctionsAtTheirEnds(t *testing.T) {
	h := startHost(t)
	inf, nan := math.Inf(1), math.NaN()
	for _, f := range []struct {
		kernel   string
		bytes    int
		x, wants []float64
	}{
		{"of_exp32", 4, []float64{0, 89, 1000, inf, -104, -1000, -inf, nan}, []float64{1, inf, inf, inf, 0, 0, 0, nan}},
		{"of_tanh32", 4, []float64{0, 1000, inf, -1000, -inf, nan}, []float64{0, 1, 1, -1, -1, nan}},
		{"of_sigmoid32", 4, []float64{0, 1000, inf, -1000, -inf, nan}, []float64{0.5, 1, 1, 0, 0, nan}},
		{"of_log1pexp32", 4, []float64{-1000, -inf, nan}, []float64{0, 0, nan}},
		{"of_gauss32", 4, []float64{0, 20, -20, 1e30, inf, nan}, []float64{1, 0, 0, 0, 0, nan}},
		{"of_normal_cdf32", 4, []float64{1000, inf, -1000, -inf, nan}, []float64{1, 1, 0, 0, nan}},
		{"of_exp64", 8, []float64{0, 1000, inf, -1000, -inf, nan}, []float64{1, inf, inf, 0, 0, nan}},
		{"of_log64", 8, []float64{1, 0, inf, -1, nan}, []float64{0, -inf, inf, nan, nan}},
	} {
		got := h.apply(t, f.kernel, f.bytes, f.x)
		if !slices.EqualFunc(got, f.wants, func(a, b float64) bool { return a == b || a != a && b != b }) {
			t.Errorf("%s of %v is %v, want %v", f.kernel, f.x, got, f.wants)
		}
	}
}

// apply computes a function of numbers, which it rounds to elements of a given size.
func (h *host) apply(t *testing.T, kernel string, size int, xs []float64) []float64 {
	t.Helper()
	var in []byte
	for i, x := range xs {
		if size == 4 {
			xs[i] = float64(float32(x))
			in = binary.LittleEndian.AppendUint32(in, math.Float32bits(float32(x)))
		} else {
			in = binary.LittleEndian.AppendUint64(in, math.Float64bits(x))
		}
	}
	m := new(memory)
	x, y := m.add(in, true), m.add(in, false)
	h.execute(t, m, []Launch{launchEach(kernel, len(xs), x.Address, y.Address, len(xs))})
	var out []float64
	for i := range xs {
		if size == 4 {
			out = append(out, float64(math.Float32frombits(binary.LittleEndian.Uint32(y.Bytes[4*i:]))))
		} else {
			out = append(out, math.Float64frombits(binary.LittleEndian.Uint64(y.Bytes[8*i:])))
		}
	}
	return out
}
