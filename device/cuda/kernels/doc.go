// Package kernels holds the arithmetic of the CUDA device: PTX, which src is compiled to by `make ptx`, and per kind of
// op the launches that execute it.
//
// Every kernel rounds as IEEE 754 says, operation by operation, and has functions such as exp of its own, so that its
// bits are those of any GPU, and of internal/ptx. How a sum is split follows from the shapes alone.
package kernels
