// Package ptx executes PTX, the text that a CUDA driver compiles, as its specification says, and objects to what a GPU
// would let pass: accesses outside of an allocation or misaligned, words and registers that nothing has written, races
// within a block and between blocks, barriers that not all threads of a block come to.
//
// It takes the instructions that the kernels of device/cuda/kernels use. Any other is an error of [Parse].
package ptx
