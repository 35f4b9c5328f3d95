// Package vector computes on slices of float32, eight elements at once where the processor has AVX2.
//
// Each function has one definition: the plain loop in Go. The assembly, which internal/vectors writes, does the
// same operations in the same order, so the bits of a result do not depend on the processor, nor on where a slice is
// cut. No product is fused with a sum: a processor without fused operations would round otherwise. Exponentials and
// what is made of them are computed in float64 by polynomials with a relative error of at most 3e-10, and are rounded
// once; sums are taken in float64 in 16 strands, strand i having the elements i, i+16 and so on.
//
// Slices of one call have the length of the first, and may be the same memory, but may not overlap otherwise. Nothing
// is allocated.
package vector
