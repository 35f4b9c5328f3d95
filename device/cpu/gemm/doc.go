// Package gemm is the one place where the CPU device multiplies matrices: C = A·B or C += A·B, dense and row-major,
// A and B as they stand or transposed, in float32 and float64.
//
// [Open] looks for OpenBLAS at run time and otherwise takes gonum's BLAS; [Engine.Name] says which one serves.
// [Multiply] computes a [Product] on it.
//
// Invariants:
//
//   - The same product on an engine with the same name and thread count gives the same bits. gonum gives the same bits
//     with any thread count; OpenBLAS does not, so an engine's count is a constant, set before each call that would
//     otherwise run with another.
//   - What C held before does not matter when Add is false, not even NaN.
//   - gonum never starts goroutines of its own: it gets tiles that it computes on the calling goroutine, and Multiply
//     starts as many goroutines as the engine has threads, none for one.
//   - The operands' addresses do not matter.
//   - Multiply reads and writes nothing outside of the matrices; operands that are too short are a bug and panic.
package gemm
