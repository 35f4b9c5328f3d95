// Package gemm is the one place where the CPU device multiplies matrices: C = A·B or C += A·B, dense and row-major,
// A and B as they stand or transposed, in float32 and float64. [Multiply] computes a [Product].
//
// A product has one definition, whatever computes it: K is cut into blocks of 256. In each block the products of an
// element of C are added up from 0 on, one after the other, a multiplication and its addition rounded once (a fused
// multiply-add). The sums of the blocks are added to the element in their order, the first one taking its place where
// Add is false. So bits depend on nothing else: not on the processor, the number of threads, the addresses or what part
// of a larger product this is. The assembly, which internal/vectors writes, has the same bits as the loops in Go; those
// serve where there is none, slowly except on arm64.
//
// The blocks are laid out as in K. Goto, R. van de Geijn: Anatomy of high-performance matrix multiplication, ACM
// Transactions on Mathematical Software 34 (2008): rows of A in the second-level cache, panels of as many columns of B
// as a tile of C has in the first. A tile's sums stay in registers.
//
// Invariants:
//
//   - What C held before does not matter when Add is false, not even NaN.
//   - Multiply reads and writes nothing outside of the matrices; operands that are too short are a bug and panic.
package gemm
