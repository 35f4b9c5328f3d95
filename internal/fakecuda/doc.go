// Package fakecuda is a driver for device/cuda without a GPU: streams, events and memory as CUDA has them, in virtual
// time, with kernels executed by internal/ptx.
//
// What is put on streams is carried out in an order drawn from a seed, any that streams and events allow. Two uses of the same
// bytes that nothing orders are an error whatever the order was, and so is what CUDA leaves undefined or does not tell of: copies from
// memory that is not pinned, waits for events that were never recorded, addresses after their release.
package fakecuda
