package gemm

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"tensile/device/cpu/crew"
	"tensile/internal/long"
)

// shapes are M, N, K on both sides of every size of tiles and blocks.
var shapes = [][3]int{
	{1, 1, 1}, {3, 5, 7}, {6, 16, 256}, {7, 17, 257}, {8, 130, 40}, {16, 64, 300}, {17, 64, 65}, {64, 49, 70},
	{97, 129, 33}, {130, 65, 17}, {5, 30, 1030}, {40, 1030, 9}, {101, 40, 513},
}

// random returns a product with every operand larger than needed and C full of rubbish.
func random[T Float](seed uint64, shape [3]int, transA, transB, add bool) Product[T] {
	rng := rand.New(rand.NewPCG(seed, 0))
	fill := func(rows, columns int, transposed bool) Matrix[T] {
		if transposed {
			rows, columns = columns, rows
		}
		m := Matrix[T]{Stride: columns + 3, Transposed: transposed}
		m.Data = make([]T, rows*m.Stride+16)
		for i := range m.Data {
			m.Data[i] = T(rng.NormFloat64())
		}
		return m
	}
	p := Product[T]{M: shape[0], N: shape[1], K: shape[2], Add: add}
	p.A, p.B, p.C = fill(p.M, p.K, transA), fill(p.K, p.N, transB), fill(p.M, p.N, false)
	if !add {
		for i := range p.M {
			for j := range p.N {
				p.C.Data[i*p.C.Stride+j] = T(math.NaN())
			}
		}
	}
	return p
}

// defined is C's data after the product as the package comment defines it.
func defined[T Float](p Product[T]) []T {
	c := slices.Clone(p.C.Data)
	for i := range p.M {
		for j := range p.N {
			to := &c[i*p.C.Stride+j]
			for l := 0; l < p.K; l += 256 {
				var sum T
				for k := l; k < min(l+256, p.K); k++ {
					sum = exact(element(p.A, i, k), element(p.B, k, j), sum)
				}
				if l > 0 || p.Add {
					sum += *to
				}
				*to = sum
			}
		}
	}
	return c
}

// exact is a*b + c, rounded once.
func exact[T Float](a, b, c T) T {
	if single[T]() {
		return T(exact32(float32(a), float32(b), float32(c)))
	}
	return T(math.FMA(float64(a), float64(b), float64(c)))
}

func element[T Float](m Matrix[T], i, j int) T {
	if m.Transposed {
		i, j = j, i
	}
	return m.Data[i*m.Stride+j]
}

func sameBits[T Float](a, b T) bool {
	return math.Float64bits(float64(a)) == math.Float64bits(float64(b))
}

// plainly runs a test with the assembly and without it.
func plainly(t *testing.T, test func(t *testing.T)) {
	t.Run("assembly", func(t *testing.T) {
		if !wide {
			t.Skip("needs a processor with AVX2")
		}
		test(t)
	})
	t.Run("plain", func(t *testing.T) {
		defer func(before bool) { wide = before }(wide)
		wide = false
		test(t)
	})
}

// Every form of every shape has the bits that the definition says, also with sources in place of A and B or C in
// segments, and C's other elements stay.
func testDefinition[T Float](t *testing.T) {
	e := New(nil)
	for _, shape := range shapes {
		if !wide && shape[0]*shape[1]*shape[2] > 200_000 && !long.On() {
			continue
		}
		for form := range 8 {
			p := random[T](uint64(form), shape, form&1 != 0, form&2 != 0, form&4 != 0)
			want := defined(p)
			for how := range 3 {
				q, source, segments := p, how == 1, how > 0
				q.C.Data = slices.Clone(p.C.Data)
				if source {
					q.B = Matrix[T]{Source: stored[T]{p.B}, Transposed: p.B.Transposed}
					if !p.A.Transposed {
						q.A = Matrix[T]{Source: stored[T]{p.A}}
					}
				}
				if segments {
					q.C = inSegments(q.C, p.M, p.N)
				}
				Multiply(e, q)
				if segments {
					q.C = outOfSegments(q.C, p.C, p.M, p.N)
				}
				if !slices.EqualFunc(q.C.Data, want, sameBits) {
					t.Errorf("%v, form %d, source %v, segments %v: other bits than the definition's", shape, form,
						source, segments)
				}
			}
		}
	}
}

func TestDefinition(t *testing.T) {
	plainly(t, func(t *testing.T) {
		t.Run("float32", testDefinition[float32])
		t.Run("float64", testDefinition[float64])
	})
}

// inSegments is a matrix that is stored by segments of seven columns.
func inSegments[T Float](c Matrix[T], rows, columns int) Matrix[T] {
	s := Matrix[T]{Stride: 9, Segment: 7, Jump: 9*rows + 2}
	s.Data = make([]T, (columns+6)/7*s.Jump)
	for i := range rows {
		for j := range columns {
			s.Data[j/7*s.Jump+i*9+j%7] = c.Data[i*c.Stride+j]
		}
	}
	return s
}

// outOfSegments is what c would be with the elements of one that is stored by segments.
func outOfSegments[T Float](s, c Matrix[T], rows, columns int) Matrix[T] {
	c.Data = slices.Clone(c.Data)
	for i := range rows {
		for j := range columns {
			c.Data[i*c.Stride+j] = s.Data[j/7*s.Jump+i*9+j%7]
		}
	}
	return c
}

// stored is a source that has the matrix in memory.
type stored[T Float] struct{ of Matrix[T] }

func (s stored[T]) Write(to []T, stride, row, rows, column, columns int) {
	for i := range rows {
		copy(to[i*stride:][:columns], s.of.Data[(row+i)*s.of.Stride+column:])
	}
}

// Products large enough to be divided have the same bits on any number of threads, as have their parts.
func TestThreadsKeepBits(t *testing.T) {
	for form := range 8 {
		for _, shape := range [][3]int{{200, 300, 70}, {8, 2000, 300}, {1500, 40, 64}, {70, 2100, 65}} {
			p := random[float32](uint64(form), shape, form&1 != 0, form&2 != 0, form&4 != 0)
			before := slices.Clone(p.C.Data)
			Multiply(New(nil), p)
			want := slices.Clone(p.C.Data)
			for _, threads := range []int{2, 3, 7} {
				c := crew.New(threads)
				copy(p.C.Data, before)
				Multiply(New(c), p)
				c.Close()
				if !slices.EqualFunc(p.C.Data, want, sameBits) {
					t.Fatalf("%v, form %d: %d threads give other bits than one", shape, form, threads)
				}
			}
			copy(p.C.Data, before)
			for i, m := range []int{shape[0] / 3, shape[0] - shape[0]/3} {
				Multiply(New(nil), p.part(i*(shape[0]/3), m, 0, p.N))
			}
			if !slices.EqualFunc(p.C.Data, want, sameBits) {
				t.Fatalf("%v, form %d: parts have other bits than the whole", shape, form)
			}
		}
	}
}

// Products are close to those in float64.
func TestTruth(t *testing.T) {
	for form := range 8 {
		for _, shape := range shapes {
			p := random[float32](uint64(form), shape, form&1 != 0, form&2 != 0, form&4 != 0)
			before := slices.Clone(p.C.Data)
			Multiply(New(nil), p)
			for i := range p.M {
				for j := range p.N {
					truth, scale := 0.0, 0.0
					if p.Add {
						truth = float64(before[i*p.C.Stride+j])
					}
					for l := range p.K {
						v := float64(element(p.A, i, l)) * float64(element(p.B, l, j))
						truth, scale = truth+v, scale+math.Abs(v)
					}
					if got := float64(p.C.Data[i*p.C.Stride+j]); !(math.Abs(got-truth) <= 1e-5*(1+scale)) {
						t.Fatalf("%v, form %d: element (%d, %d) is %v, in truth %v", shape, form, i, j, got, truth)
					}
				}
			}
		}
	}
}

// fused32 rounds once, also where a float64 would come to lie between two float32, and below full precision.
func TestFused(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	some := func() float32 {
		switch rng.IntN(4) {
		case 0: // few bits, so that sums come to lie halfway
			return float32(rng.IntN(1<<13)-1<<12) * float32(math.Ldexp(1, rng.IntN(40)-20))
		case 1:
			return math.Float32frombits(rng.Uint32())
		case 2:
			return math.Float32frombits(rng.Uint32() &^ (0x70 << 24)) // small
		}
		return float32(rng.NormFloat64())
	}
	for range long.Rounds(100_000, 3_000_000) {
		a, b, c := some(), some(), some()
		want := rounded(a, b, c)
		for _, got := range []float32{exact32(a, b, c), fused32(a, b, c)} {
			if math.Float32bits(got) != math.Float32bits(want) && (got == got || want == want) {
				t.Fatalf("%v * %v + %v = %v, want %v", a, b, c, got, want)
			}
		}
	}
}

// rounded is a*b + c by exact arithmetic.
func rounded(a, b, c float32) float32 {
	p := float64(a) * float64(b) // exact
	if s := p + float64(c); math.IsInf(s, 0) || s != s || s == 0 {
		return float32(s)
	}
	sum := new(big.Float).SetPrec(700).SetFloat64(p)
	sum.Add(sum, new(big.Float).SetFloat64(float64(c)))
	got, _ := sum.Float32()
	return got
}

// Repeated and concurrent calls of one engine give the same bits.
func TestConcurrentCallsKeepBits(t *testing.T) {
	c := crew.New(2)
	defer c.Close()
	e := New(c)
	first := random[float32](9, [3]int{96, 200, 300}, false, false, false)
	Multiply(e, first)
	var wait sync.WaitGroup
	for range 4 {
		wait.Go(func() {
			for range 10 {
				p := random[float32](9, [3]int{96, 200, 300}, false, false, false)
				Multiply(e, p)
				if !slices.EqualFunc(p.C.Data, first.C.Data, sameBits) {
					t.Error("a repeated call gives other bits")
				}
			}
		})
	}
	wait.Wait()
}

// Without a crew nothing is allocated once there is room.
func TestNoAllocations(t *testing.T) {
	e := New(nil)
	for form := range 4 {
		p := random[float32](1, [3]int{200, 300, 70}, form&1 != 0, form&2 != 0, false)
		if n := testing.AllocsPerRun(5, func() { Multiply(e, p) }); n != 0 {
			t.Errorf("form %d: %v allocations a product, want 0", form, n)
		}
	}
}

func TestShortOperandsPanic(t *testing.T) {
	good := random[float32](1, [3]int{4, 5, 6}, true, false, false)
	for name, spoil := range map[string]func(p *Product[float32]){
		"short A":      func(p *Product[float32]) { p.A.Data = p.A.Data[:5*p.A.Stride+3] },
		"short B":      func(p *Product[float32]) { p.B.Data = p.B.Data[:5*p.B.Stride+4] },
		"short C":      func(p *Product[float32]) { p.C.Data = p.C.Data[:3*p.C.Stride+4] },
		"small stride": func(p *Product[float32]) { p.B.Stride = 4 },
		"no columns":   func(p *Product[float32]) { p.N = 0 },
	} {
		t.Run(name, func(t *testing.T) {
			p := good
			spoil(&p)
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			Multiply(New(nil), p)
		})
	}
}

// BenchmarkMultiply reports GFLOP/s on what convolutions and linear layers ask for.
func BenchmarkMultiply(b *testing.B) {
	for _, c := range []struct {
		name           string
		shape          [3]int
		transA, transB bool
	}{
		{"conv_64x448x576", [3]int{64, 448, 576}, false, false},
		{"conv_512x49x4608", [3]int{512, 49, 4608}, false, false},
		{"conv1x1_256x3136x64", [3]int{256, 3136, 64}, false, false},
		{"conv_dw_64x576x448", [3]int{64, 576, 448}, false, true},
		{"conv_dw_512x4608x49", [3]int{512, 4608, 49}, false, true},
		{"conv_dx_576x448x64", [3]int{576, 448, 64}, true, false},
		{"linear_8x4096x4096", [3]int{8, 4096, 4096}, false, true},
		{"linear_64x4096x4096", [3]int{64, 4096, 4096}, false, true},
		{"linear_dx_8x4096x4096", [3]int{8, 4096, 4096}, false, false},
		{"linear_dx_64x4096x4096", [3]int{64, 4096, 4096}, false, false},
		{"linear_dw_4096x4096x64", [3]int{4096, 4096, 64}, true, false},
	} {
		for _, threads := range []int{1, 2} {
			b.Run(fmt.Sprintf("product=%s/threads=%d", c.name, threads), func(b *testing.B) {
				helpers := crew.New(threads)
				defer helpers.Close()
				e := New(helpers)
				p := random[float32](1, c.shape, c.transA, c.transB, false)
				for b.Loop() {
					Multiply(e, p)
				}
				flops := 2 * float64(p.M) * float64(p.N) * float64(p.K) * float64(b.N)
				b.ReportMetric(flops/1e9/b.Elapsed().Seconds(), "GFLOP/s")
			})
		}
	}
}
