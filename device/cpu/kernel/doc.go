// Package kernel is the arithmetic of every operator kind on the CPU, generic in float32 and float64.
//
// A [Call] is one execution of an op: its operands as slices, their shapes, scratch. [Run] looks the kind up in one
// table and computes the outputs; [Scratch] says how many elements of scratch it needs. The order and meaning of
// operands are documented beside the kinds in package graph. Operators in place get the
// same memory as input and output.
//
//	In, InShapes ──┐
//	Attrs, Seed ───┼──> table[Kind].run ──> Out
//	Scratch ───────┘         │
//	                    gemm.Engine   (convolutions and linear layers) and its crew
//
// Invariants:
//
//   - The outputs' bits are a function of the inputs, the attributes, the seed and the iteration. Sums have a fixed
//     order that follows from shapes alone, and dropout's mask is a function of (seed, iteration, key, element). So a
//     crew of any number of threads computes parts of a call at once: elements, rows, or what is not added up.
//   - What outputs and scratch held before does not matter, not even NaN. Inputs that are not updated in place are
//     never written.
//   - An output that is not wanted is nil, for the kinds with several fresh outputs; the others keep their bits.
//   - Operands that do not fit their shapes are a bug of the caller and panic.
package kernel
