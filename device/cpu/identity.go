package cpu

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math"
	"runtime"
	"runtime/debug"

	"tensile/device/cpu/gemm"
	"tensile/device/cpu/kernel"
	"tensile/device/cpu/vector"
)

// architecture is what the program was compiled for: amd64-v1, say. From amd64-v3 on the compiler fuses multiplications
// and additions, as it does for other architectures, and fused ones round once instead of twice.
func architecture() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "GOAMD64" {
				return runtime.GOARCH + "-" + s.Value
			}
		}
	}
	return runtime.GOARCH
}

// kernelsDigest identifies the bits of what kernels come to on this processor: those of packages kernel, gemm and
// vector, which are the same on all, and those of math.Exp, which uses fused multiplications where the
// processor has them.
func kernelsDigest() string {
	sum := fnv.New32a()
	_ = binary.Write(sum, binary.LittleEndian, int64(kernel.Revision)) // to a sum, which takes all
	var x, y, slope [2001]float32
	for i := range x {
		x[i] = float32(i-1000) / 97
	}
	for _, of := range []func(y, x []float32){vector.Exp[float32], vector.Sigmoid[float32], vector.Tanh[float32],
		vector.Erf[float32], vector.GELU[float32], func(y, x []float32) { vector.GELUGrad(y, x, x) }} {
		of(y[:], x[:])
		_ = binary.Write(sum, binary.LittleEndian, y[:])
	}
	vector.Scale(slope[:], y[:], 0.3)
	_ = binary.Write(sum, binary.LittleEndian, []float64{vector.Sum(slope[:]), vector.SumSquares(y[:], 0.1)})
	gemm.Multiply(gemm.New(nil), gemm.Product[float32]{M: 3, N: 2, K: 300,
		A: gemm.Matrix[float32]{Data: x[:], Stride: 300}, B: gemm.Matrix[float32]{Data: y[:], Stride: 2},
		C: gemm.Matrix[float32]{Data: slope[:], Stride: 2}})
	_ = binary.Write(sum, binary.LittleEndian, slope[:6])
	for _, v := range x {
		_ = binary.Write(sum, binary.LittleEndian, math.Exp(float64(v)))
	}
	return fmt.Sprintf("%08x", sum.Sum32())
}
