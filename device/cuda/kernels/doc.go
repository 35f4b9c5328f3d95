// Package kernels holds the arithmetic of the CUDA device: PTX, which src is compiled to by `make ptx`, and per kind of
// op the launches that execute it.
//
//	src/*.c ──clang──> ptx/*.ptx ──embedded──> Texts ──> the driver, or device/ptx
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
//     GPU and in device/ptx: arithmetic rounds as IEEE 754 says, operation by operation, functions such as exp are
//     made of it (src/functions.h says how exact they are), and no float is added to by an atomic operation.
//   - How a sum is split follows from the shapes alone. A gradient that several outputs add to is gathered by one
//     thread per element, in the order of those outputs.
//   - Which outputs are wanted, and in place of which operand the first is made, changes no bit of the others.
//   - What outputs and scratch held before does not matter. Inputs that are not updated in place are never written.
//   - Nothing that is launched depends on the iteration: kernels read it from the device.
//   - Indices are of 64 bits, within an image or a matrix of a product of 32, which refuses what they cannot count. An
//     id or a label out of range makes NaN, since a kernel cannot say more.
//
// # Products and convolutions
//
// Linear layers, batched products and convolutions are one blocked matrix product, c = a·b (src/product.h). Its
// operands are loaded as they stand in memory: matrices in either order, the planes of images, or the pixels under the
// windows of a convolution. So a convolution lays out no columns; scratch holds the parts of c alone, where k is split.
//
//	tile       threads  elements a thread  step of k
//	16 x 16         64              2 x 2         16
//	64 x 64        256              4 x 4         16
//	128 x 128      256              8 x 8          8
//
// Slices of a and b are double-buffered in shared memory. An element of c is one chain of fma over k in rising order
// with each tile: the tile is chosen for speed and does not change bits. Parts of k are chains of their own, which
// product_sum adds up in order. Tile and parts minimise a count of steps on 128 multiprocessors, whatever the chip.
//
//	kind       kernel                     m                  n                 k
//	linear     product_nt                 rows               outputs           inputs
//	linear_dw  product_tn                 rows of one tile   inputs            rows
//	linear_dx  product_nn                 rows               inputs            outputs
//	matmul     product_nn, nt, tn, tt
//	conv2d     conv, product_nn           filters            image, pixel      channel, weight
//	conv2d_dw  conv_dw, product_nt        filters            channel, weight   image, pixel
//	conv2d_dx  conv_dx, product_tn        channels           image, pixel      filter, weight
//
// The second kernel is for windows of one pixel, a stride of one and no padding. A conv2d_dx with a stride of s is s·s
// products, of the pixels that meet the same weights, so that it multiplies by no zeros between the pixels of dy.
// Groups of fewer than eight channels or filters have kernels without tiles (src/grouped.c).
//
// In the loop of the 128 x 128 tile, with aligned operands, fma are 84 to 86 of 100 instructions of the text in
// product_*, 76 in conv, 79 in conv_dw and 73 in conv_dx (TestShareOfFMA); a step of eight k is 512 fma, 32 loads of 16
// bytes from shared memory, and one barrier. Registers and spills are known where ptxas is installed (`make
// ptx-check`): they have not been seen yet, and neither has the speed on a GPU.
package kernels
