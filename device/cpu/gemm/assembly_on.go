//go:build amd64 && !noasm && !gccgo && !safe

package gemm

// assembly is whether gonum was built with its kernels in assembly, under the same condition as there.
const assembly = true
