package gemm

import "runtime/debug"

// gonumIdentity is gonum's version, and whether its kernels are those in assembly or those in Go: they sum in other
// orders.
func gonumIdentity() string {
	const module = "gonum.org/v1/gonum"
	version := "unknown"
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			if m.Path == module {
				version = m.Version
			}
		}
	}
	if assembly {
		return "gonum-" + version + "-assembly"
	}
	return "gonum-" + version + "-go"
}
