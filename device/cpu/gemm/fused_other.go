//go:build !arm64

package gemm

func fused32(a, b, c float32) float32 { return exact32(a, b, c) }
