package gemm

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"gonum.org/v1/gonum/blas/gonum"

	_ "tensile/internal/long" // the flag -long
	"tensile/internal/needs"
)

// shapes are M, N, K on both sides of every tile size.
var shapes = [][3]int{
	{1, 1, 1}, {3, 5, 7}, {8, 130, 40}, {31, 64, 65}, {32, 64, 65}, {64, 49, 70}, {65, 129, 33}, {130, 260, 17},
	{33, 40, 1030}, {5, 30, 2050},
}

// open returns an engine, or skips the test where OpenBLAS is wanted and not there.
func open(t testing.TB, library string, threads int) *Engine {
	t.Helper()
	e, err := Open(threads, Options{NoOpenBLAS: library == "gonum"})
	if err != nil {
		t.Fatal(err)
	}
	if library == "openblas" {
		needs.OpenBLAS(t, e.Name())
	}
	return e
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
			row := p.C.Data[i*p.C.Stride:][:p.N]
			for j := range row {
				row[j] = T(math.NaN())
			}
		}
	}
	return p
}

// slow is the oracle: the product in float64, and C's other elements as they were.
func slow[T Float](p Product[T]) []T {
	c := slices.Clone(p.C.Data)
	for i := range p.M {
		for j := range p.N {
			sum := 0.0
			if p.Add {
				sum = float64(c[i*p.C.Stride+j])
			}
			for l := range p.K {
				sum += float64(element(p.A, i, l)) * float64(element(p.B, l, j))
			}
			c[i*p.C.Stride+j] = T(sum)
		}
	}
	return c
}

func element[T Float](m Matrix[T], i, j int) T {
	if m.Transposed {
		i, j = j, i
	}
	return m.Data[i*m.Stride+j]
}

func forEachProduct[T Float](t *testing.T, check func(t *testing.T, p Product[T])) {
	for _, shape := range shapes {
		for form := range 8 {
			transA, transB, add := form&1 != 0, form&2 != 0, form&4 != 0
			t.Run(fmt.Sprintf("%v,transA=%v,transB=%v,add=%v", shape, transA, transB, add), func(t *testing.T) {
				check(t, random[T](uint64(form), shape, transA, transB, add))
			})
		}
	}
}

func testAgainstSlow[T Float](t *testing.T, library string, tolerance float64) {
	e := open(t, library, 2)
	forEachProduct(t, func(t *testing.T, p Product[T]) {
		want := slow(p)
		Multiply(e, p)
		for i, got := range p.C.Data {
			if diff := math.Abs(float64(got - want[i])); !(diff <= tolerance*math.Sqrt(float64(p.K))) {
				t.Fatalf("C.Data[%d] = %v, want %v", i, got, want[i])
			}
		}
	})
}

func TestMultiplyAgainstSlow(t *testing.T) {
	for _, library := range []string{"gonum", "openblas"} {
		t.Run(library+"/float32", func(t *testing.T) { testAgainstSlow[float32](t, library, 1e-5) })
		t.Run(library+"/float64", func(t *testing.T) { testAgainstSlow[float64](t, library, 1e-13) })
	}
}

// Whatever the number of threads, gonum's bits are the same.
func testThreadsKeepBits[T Float](t *testing.T) {
	forEachProduct(t, func(t *testing.T, p Product[T]) {
		before := slices.Clone(p.C.Data)
		Multiply(open(t, "gonum", 1), p)
		want := slices.Clone(p.C.Data)
		for _, threads := range []int{2, 3, 7} {
			copy(p.C.Data, before)
			Multiply(open(t, "gonum", threads), p)
			if !slices.Equal(p.C.Data, want) {
				t.Fatalf("%d threads give other bits than one", threads)
			}
		}
	})
}

func TestThreadsKeepBits(t *testing.T) {
	t.Run("float32", testThreadsKeepBits[float32])
	t.Run("float64", testThreadsKeepBits[float64])
}

// With few rows, operands are not packed and tiles change nothing: the bits are those of gonum's unsplit call.
func TestTilesKeepBitsOfUnsplitCall(t *testing.T) {
	forEachProduct(t, func(t *testing.T, p Product[float32]) {
		if p.M >= packedM || p.B.Transposed {
			t.Skip("packed: see TestPackedBits")
		}
		c := slices.Clone(p.C.Data)
		Multiply(open(t, "gonum", 1), p)
		callUnsplit(p, c)
		if !slices.Equal(c, p.C.Data) {
			t.Fatal("the tiled product has other bits than gonum's own")
		}
	})
}

func callUnsplit(p Product[float32], c []float32) {
	callGonum(p.M, p.N, p.K, p.A, p.B, Matrix[float32]{Data: c, Stride: p.C.Stride}, p.Add)
}

// Packed products are sums of gonum's dot products of up to tileK elements, added in order.
func TestPackedBits(t *testing.T) {
	forEachProduct(t, func(t *testing.T, p Product[float32]) {
		if p.M < packedM && !p.B.Transposed {
			t.Skip("not packed: see TestTilesKeepBitsOfUnsplitCall")
		}
		want := slices.Clone(p.C.Data)
		for i := range p.M {
			for j := range p.N {
				c := &want[i*p.C.Stride+j]
				if !p.Add {
					*c = 0
				}
				for l := 0; l < p.K; l += tileK {
					a, b := gather(p.A, i, l, 0, 1, min(tileK, p.K-l)), gather(p.B, l, j, 1, 0, min(tileK, p.K-l))
					*c += gonum.Implementation{}.Sdot(len(a), a, 1, b, 1)
				}
			}
		}
		Multiply(open(t, "gonum", 1), p)
		if !slices.Equal(want, p.C.Data) {
			t.Fatal("the packed product has other bits than dot products in order")
		}
	})
}

// gather returns k elements of m from (i, l) on, in direction (di, dl), aligned as panels are.
func gather(m Matrix[float32], i, l, di, dl, k int) []float32 {
	got := make([]float32, k, k+8)
	for n := range got {
		got[n] = element(m, i+n*di, l+n*dl)
	}
	return got
}

// Operands that start one to three elements later give the same bits.
func TestAlignmentKeepsBits(t *testing.T) {
	e := open(t, "gonum", 1)
	forEachProduct(t, func(t *testing.T, p Product[float32]) {
		q := p
		Multiply(e, p)
		q.A.Data = append(make([]float32, 1, 1+len(p.A.Data)), p.A.Data...)[1:]
		q.B.Data = append(make([]float32, 2, 2+len(p.B.Data)), p.B.Data...)[2:]
		q.C.Data = append(make([]float32, 3, 3+len(p.C.Data)), p.C.Data...)[3:]
		if q.Add {
			Multiply(e, p)
		}
		Multiply(e, q)
		if !slices.EqualFunc(p.C.Data, q.C.Data, sameBits) {
			t.Fatal("operands at other addresses give other bits")
		}
	})
}

// Repeated and concurrent calls give the same bits, and engines with other thread counts do not disturb one another.
func TestConcurrentCallsKeepBits(t *testing.T) {
	for _, library := range []string{"gonum", "openblas"} {
		t.Run(library, func(t *testing.T) {
			var wait sync.WaitGroup
			for _, threads := range []int{1, 2} {
				e := open(t, library, threads)
				first := random[float32](9, [3]int{96, 200, 300}, false, false, false)
				Multiply(e, first)
				for range 4 {
					wait.Go(func() {
						for range 10 {
							p := random[float32](9, [3]int{96, 200, 300}, false, false, false)
							Multiply(e, p)
							if !slices.EqualFunc(p.C.Data, first.C.Data, sameBits) {
								t.Errorf("%d threads: a repeated call gives other bits", threads)
							}
						}
					})
				}
			}
			wait.Wait()
		})
	}
}

func sameBits(a, b float32) bool { return math.Float32bits(a) == math.Float32bits(b) }

// gonum would allocate if it went parallel.
func TestGonumStaysOnTheCallingGoroutine(t *testing.T) {
	e := open(t, "gonum", 1)
	for form := range 4 {
		p := random[float32](1, [3]int{200, 300, 70}, form&1 != 0, form&2 != 0, false)
		if n := testing.AllocsPerRun(5, func() { Multiply(e, p) }); n != 0 {
			t.Errorf("form %d: %v allocations a product, want 0", form, n)
		}
	}
}

func TestShortOperandsPanic(t *testing.T) {
	e := open(t, "gonum", 1)
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
			Multiply(e, p)
		})
	}
}

func TestOpen(t *testing.T) {
	if _, err := Open(0, Options{}); err == nil {
		t.Error("Open takes a thread count of 0")
	}
	e := open(t, "gonum", 3)
	if e.Name() != "gonum" || e.Threads() != 3 {
		t.Errorf("Open(3, NoOpenBLAS) = %s with %d threads, want gonum with 3", e.Name(), e.Threads())
	}
	if got := openBLASName("OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH"); got != "openblas 0.3.21" {
		t.Errorf("openBLASName = %q", got)
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
		for _, library := range []string{"gonum", "openblas"} {
			for _, threads := range []int{1, 2} {
				b.Run(fmt.Sprintf("product=%s/library=%s/threads=%d", c.name, library, threads), func(b *testing.B) {
					e := open(b, library, threads)
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
}
