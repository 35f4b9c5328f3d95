package vector

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"tensile/internal/long"
)

// unaries are the functions of one operand, and what float64 has for them.
var unaries = map[string]struct {
	of    func(y, x []float32)
	truth func(x float64) float64
}{
	"exp":     {Exp[float32], math.Exp},
	"sigmoid": {Sigmoid[float32], func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }},
	"tanh":    {Tanh[float32], math.Tanh},
	"erf":     {Erf[float32], math.Erf},
	"gelu":    {GELU[float32], func(x float64) float64 { return x * math.Erfc(-x/math.Sqrt2) / 2 }},
	"gelu's slope": {func(y, x []float32) { GELUGrad(y, x, ones[:len(x)]) }, func(x float64) float64 {
		return math.Erfc(-x/math.Sqrt2)/2 + x*math.Exp(-x*x/2)/math.Sqrt(2*math.Pi)
	}},
}

var ones [1024]float32

func init() {
	for i := range ones {
		ones[i] = 1
	}
}

// ulps is how far y is from the truth, in units of the last place of a float32 of its size.
func ulps(y float32, truth float64) float64 {
	if math.IsNaN(truth) && y != y || float64(y) == truth {
		return 0
	}
	nearest := float32(truth)
	if math.IsInf(float64(nearest), 0) || y == nearest {
		if y == nearest {
			return 0
		}
		return math.Inf(1)
	}
	size := math.Abs(float64(nearest))
	unit := math.Max(math.Ldexp(1, -149), math.Ldexp(1, math.Ilogb(math.Max(size, math.SmallestNonzeroFloat32))-23))
	return math.Abs(float64(y)-truth) / unit
}

// Each function is at most one unit of the last place from what float64 has, on every input of a sample of all, and has
// the same bits with and without the assembly.
func TestUnary(t *testing.T) {
	stride := long.Or[uint64](65_537, 4_099)
	if long.Soak() {
		stride = 1
	}
	for name, f := range unaries {
		t.Run(name, func(t *testing.T) {
			var worst float64
			var at float32
			x, y, plain := make([]float32, len(ones)), make([]float32, len(ones)), make([]float32, len(ones))
			for next := uint64(0); next < 1<<32; {
				for i := range x {
					x[i] = math.Float32frombits(uint32(next))
					next += stride
				}
				both(y, plain, func(to []float32) { f.of(to, x) })
				for i, v := range x {
					if math.Float32bits(y[i]) != math.Float32bits(plain[i]) && (y[i] == y[i] || plain[i] == plain[i]) {
						t.Fatalf("at %v the assembly has %v and the definition %v", v, y[i], plain[i])
					}
					truth := f.truth(float64(v))
					if math.IsInf(float64(v), 0) && math.IsNaN(truth) {
						continue // of infinity times zero
					}
					off := ulps(y[i], truth)
					if name == "gelu's slope" { // it is a difference, which has a zero
						off = math.Min(off, math.Abs(float64(y[i])-truth)/math.Ldexp(1, -31))
					}
					if off > worst {
						worst, at = off, v
					}
				}
			}
			t.Logf("at most %.3f units off, at %v", worst, at)
			if worst > 1 {
				t.Errorf("%.3f units off at %v", worst, at)
			}
		})
	}
}

// both has a result computed with and without the assembly.
func both(y, plain []float32, compute func(to []float32)) {
	compute(y)
	was := wide
	wide = false
	compute(plain)
	wide = was
}

// Every function has the same bits with and without the assembly, for any length, and is what its definition says.
func TestSameBits(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 46))
	draw := func(n int) []float32 {
		x := make([]float32, n)
		for i := range x {
			switch rng.IntN(40) {
			case 0:
				x[i] = float32(math.Inf(1 - 2*rng.IntN(2)))
			case 1:
				x[i] = float32(math.NaN())
			case 2:
				x[i] = math.Float32frombits(uint32(rng.IntN(2)) << 31) // zeros of both signs
			default:
				x[i] = float32(rng.NormFloat64()) * float32(math.Ldexp(1, rng.IntN(20)-10))
			}
		}
		return x
	}
	for n := range 70 {
		for range 20 {
			a, b, c, d := draw(n), draw(n), draw(n), draw(n)
			p, q := float32(rng.NormFloat64()), float32(rng.Float64())
			var words [2][]uint64
			for k := range words {
				clone := func(x []float32) []float32 { return append([]float32(nil), x...) }
				y, z, m, v := make([]float32, n), clone(a), clone(c), clone(d)
				out := func(x []float32) {
					for _, f := range x {
						if f != f {
							f = float32(math.NaN())
						}
						words[k] = append(words[k], uint64(math.Float32bits(f)))
					}
				}
				number := func(f float64) {
					if f != f {
						f = math.NaN()
					}
					words[k] = append(words[k], math.Float64bits(f))
				}
				was := wide
				wide = wide && k == 0
				Add(y, a, b)
				out(y)
				Multiply(y, a, b)
				out(y)
				Scale(y, a, p)
				out(y)
				ReLU(y, a)
				out(y)
				KeepPositive(y, a, b)
				out(y)
				Normalise(y, a, p, q, p)
				out(y)
				NormaliseGrad(y, a, b, p, q, p, q)
				out(y)
				SGD(z, b, q)
				out(z)
				Momentum(z, b, m, q, 0.9)
				out(z)
				out(m)
				Adam(z, b, m, v, &AdamStep[float32]{0.1, 1.5, 1e-8, 0.9, 0.1, 0.99, 0.01})
				out(z)
				out(m)
				out(v)
				number(ExpSum(y, a, float64(q), float64(p)))
				out(y)
				Divide(y, float64(q))
				out(y)
				number(float64(Largest(a)))
				number(Sum(a))
				number(SumSquares(a, float64(p)))
				s, r := SumProducts(a, b, float64(p))
				number(s)
				number(r)
				wide = was
			}
			for i := range words[0] {
				if words[0][i] != words[1][i] {
					t.Fatalf("with %d elements word %d is %x with the assembly and %x without", n, i, words[0][i],
						words[1][i])
				}
			}
		}
	}
}

// Sums are those of all elements, and the largest is the largest.
func TestSums(t *testing.T) {
	for n := range 100 {
		x, y := make([]float32, n), make([]float32, n)
		var sum, squares, product float64
		most := math.Inf(-1)
		for i := range x {
			x[i], y[i] = float32(i*7%13), float32(i*5%11) // whole numbers: no order rounds
			sum += float64(x[i])
			squares += (float64(x[i]) - 2) * (float64(x[i]) - 2)
			product += (float64(x[i]) - 2) * float64(y[i])
			most = math.Max(most, float64(x[i]))
		}
		total, p := SumProducts(x, y, 2)
		if Sum(x) != sum || SumSquares(x, 2) != squares || p != product || total != Sum(y) ||
			float64(Largest(x)) != most {
			t.Errorf("%d elements: %v %v %v %v", n, Sum(x), SumSquares(x, 2), p, Largest(x))
		}
	}
}

func BenchmarkUnary(b *testing.B) {
	x, y := make([]float32, 4096), make([]float32, 4096)
	for i := range x {
		x[i] = float32(i%200-100) / 20
	}
	for name, f := range unaries {
		if name == "gelu's slope" {
			continue
		}
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(4 * len(x)))
			for range b.N {
				f.of(y, x)
			}
		})
		b.Run(name+"/math", func(b *testing.B) {
			b.SetBytes(int64(4 * len(x)))
			for range b.N {
				for i, v := range x {
					y[i] = float32(f.truth(float64(v)))
				}
			}
		})
	}
}

// The bits are the same on every machine, whatever its compiler fuses.
func TestDigest(t *testing.T) {
	const n = 2001
	var x, y, m, v [n]float32
	for i := range x {
		x[i] = float32(i-1000) / 97
	}
	sum := fnv.New64a()
	take := func(all any) {
		if err := binary.Write(sum, binary.LittleEndian, all); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(unaries)) {
		for first := 0; first < n; first += len(ones) { // the slope takes as many at once
			last := min(first+len(ones), n)
			unaries[name].of(y[first:last], x[first:last])
		}
		take(y[:])
	}
	take([]float64{Sum(y[:]), SumSquares(y[:], 0.1), ExpSum(y[:], x[:], 0.5, 3)})
	Normalise(y[:], x[:], 0.1, 1.7, 0.3)
	NormaliseGrad(v[:], x[:], y[:], 0.1, 0.7, 0.3, 1.1)
	take(v[:])
	Momentum(y[:], x[:], m[:], 0.1, 0.9)
	clear(v[:])
	Adam(y[:], x[:], m[:], v[:], &AdamStep[float32]{0.01, 1.5, 1e-8, 0.9, 0.1, 0.999, 0.001})
	take(y[:])
	const want = "2ea5e59e4c05f5fb"
	if got := fmt.Sprintf("%x", sum.Sum64()); got != want {
		t.Errorf("the digest is %s, want %s", got, want)
	}
}
