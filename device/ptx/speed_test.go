package ptx

import (
	"math"
	"os"
	"syscall"
	"testing"
)

// BenchmarkProduct multiplies matrices by 64x64 tiles: most of the instructions are fma and loads from shared memory.
func BenchmarkProduct(b *testing.B) {
	const n = 128
	m := &memory{}
	x, y, z := m.add(bytesOf(randomFloats(1, n*n))), m.add(bytesOf(randomFloats(2, n*n))), m.empty(4*n*n)
	benchmark(b, kernels(b).Kernel("product"), Launch{Grid: [3]uint32{n / 64, n / 64, 1}, Block: [3]uint32{256, 1, 1},
		Args: []uint64{z, x, y, n}, Memory: m})
}

// BenchmarkAxpy is bound by loads and stores of global memory.
func BenchmarkAxpy(b *testing.B) {
	const n = 1 << 16
	m := &memory{}
	x, y := m.add(bytesOf(randomFloats(1, n))), m.add(bytesOf(randomFloats(2, n)))
	benchmark(b, kernels(b).Kernel("axpy"), Launch{Grid: [3]uint32{n / 256, 1, 1}, Block: [3]uint32{256, 1, 1},
		Args: []uint64{y, x, 0, n}, Memory: m})
}

// BenchmarkCollatz is bound by lanes that go their own ways.
func BenchmarkCollatz(b *testing.B) {
	const n = 1 << 12
	m := &memory{}
	x := make([]int32, n)
	for i := range x {
		x[i] = int32(i + 1)
	}
	px, py := m.add(bytesOf(x)), m.empty(4*n)
	benchmark(b, kernels(b).Kernel("collatz"), Launch{Grid: [3]uint32{n / 256, 1, 1}, Block: [3]uint32{256, 1, 1},
		Args: []uint64{py, px, n}, Memory: m})
}

// BenchmarkLaunch is a small launch: what each costs at least.
func BenchmarkLaunch(b *testing.B) {
	m := &memory{}
	x, y := m.add(bytesOf(randomFloats(1, 32))), m.add(bytesOf(randomFloats(2, 32)))
	benchmark(b, kernels(b).Kernel("axpy"), Launch{Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{256, 1, 1},
		Args: []uint64{y, x, 0, 32}, Memory: m})
}

// BenchmarkParse reads the text of all kernels.
func BenchmarkParse(b *testing.B) {
	text, err := os.ReadFile("testdata/kernels.ptx")
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if _, err := Parse(string(text)); err != nil {
			b.Fatal(err)
		}
	}
}

// benchmark reports the least nanoseconds of CPU of any run per instruction of a thread.
func benchmark(b *testing.B, k *Kernel, l Launch) {
	least := math.Inf(1)
	for b.Loop() {
		begin := cpuTime()
		f, err := k.Run(l)
		if err != nil {
			b.Fatal(err)
		}
		least = min(least, float64(cpuTime()-begin)/float64(f.Instructions))
	}
	b.ReportMetric(least, "least-cpu-ns/instruction")
}

func cpuTime() int64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return u.Utime.Nano() + u.Stime.Nano()
}
