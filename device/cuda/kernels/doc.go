// Package kernels holds the arithmetic of the CUDA device: PTX, which src is compiled to by `make ptx`, and per kind of
// op the launches that execute it.
//
//	src/*.c ──clang──> ptx/*.ptx ──embedded──> Texts ──> the driver, or internal/ptx
//	   └──────gcc────> testdata/host.c, in tests
//	Call ──table[Kind]──> Launches: kernel, grid, block, arguments
//
// A family of kinds is a file in Go, one in C and one of tests. [Launches] says what an op launches, [Scratch] how much
// memory beside its operands that takes. The order and meaning of operands are documented beside the kinds in package
// graph.
//
// Invariants:
//
//   - The outputs' bits are a function of the inputs, the attributes, the shapes, the seed and the iteration, on any
//     GPU and in internal/ptx: arithmetic rounds as IEEE 754 says, operation by operation, functions such as exp are
//     made of it (src/functions.h says how exact they are), and no float is added to by an atomic operation.
//   - How a sum is split follows from the shapes alone. A gradient that several outputs add to is gathered by one
//     thread per element, in the order of those outputs.
//   - Which outputs are wanted, and in place of which operand the first is made, changes no bit of the others.
//   - What outputs and scratch held before does not matter. Inputs that are not updated in place are never written.
//   - Nothing that is launched depends on the iteration: kernels read it from the device.
//   - Indices are of 64 bits. An id or a label out of range makes NaN, since a kernel cannot say more.
package kernels
