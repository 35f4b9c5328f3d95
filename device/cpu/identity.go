package cpu

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math"
	"runtime"
	"runtime/debug"
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

// expDigest identifies the bits of math.Exp on this processor.
func expDigest() string {
	sum := fnv.New32a()
	var bits [8]byte
	for i := -1000; i <= 1000; i++ {
		binary.LittleEndian.PutUint64(bits[:], math.Float64bits(math.Exp(float64(i)/97)))
		sum.Write(bits[:])
	}
	return fmt.Sprintf("%08x", sum.Sum32())
}
