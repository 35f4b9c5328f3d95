package cpu

import (
	"runtime"
	"time"

	"tensile/device/cpu/gemm"
	"tensile/graph/cost"
)

// measure takes the rates that plans start from: GEMM on a matrix that fits the cache, and copying one that does not.
// Each is the best of a few runs; what they miss, the measured latencies of a run correct.
func measure(engine *gemm.Engine) (cost.Facts, error) {
	const n = 256
	square := func() gemm.Matrix[float32] { return gemm.Matrix[float32]{Data: ones(n * n), Stride: n} }
	p := gemm.Product[float32]{M: n, N: n, K: n, A: square(), B: square(), C: square()}
	product := best(4, func() { gemm.Multiply(engine, p) })
	const large = 16 << 20
	m, err := reserve(2 * large) // by large pages: with small ones, to back this memory takes longer than all else here
	if err != nil {
		return cost.Facts{}, err
	}
	defer m.free()
	adviseLarge(m.mapping)
	from, to := m.bytes[:large], m.bytes[large:]
	for i := 0; i < large; i += 1 << 10 { // else all pages are one of zeros, in the cache
		from[i] = 1
	}
	copied := best(4, func() { copy(to, from) })
	return cost.Facts{
		Name:           "cpu",
		Compute:        cost.FLOPsPerSecond(2 * n * n * n / product.Seconds()),
		Bandwidth:      cost.BytesPerSecond(2 * large / copied.Seconds()), // read and written
		ComputeShare:   1,
		BandwidthShare: 0.5, // scalar loops, seen on elementwise kernels
		Launch:         2 * time.Microsecond,
		Parallel:       max(1, runtime.NumCPU()/engine.Crew().Threads()),
		Host:           cost.Link{Rate: cost.BytesPerSecond(large / copied.Seconds())},
	}, nil
}

func ones(n int) []float32 {
	s := make([]float32, n)
	for i := range s {
		s[i] = 1
	}
	return s
}

func best(runs int, f func()) time.Duration {
	var shortest time.Duration
	for range runs {
		start := time.Now()
		f()
		if took := time.Since(start); shortest == 0 || took < shortest {
			shortest = took
		}
	}
	return max(shortest, 1)
}
