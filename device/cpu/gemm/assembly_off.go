//go:build !amd64 || noasm || gccgo || safe

package gemm

const assembly = false
