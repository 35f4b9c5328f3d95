// Package fakecuda is a driver for device/cuda without a GPU: streams, events and memory as CUDA has them, in virtual
// time, with kernels executed by device/ptx.
//
// What is put on streams is a graph of operations: each comes after the one before it on its stream and after the
// records of the events that its stream waits for. Nothing is carried out until the host needs it; then the seed picks
// one order of all that streams and events allow. The times of events come from a simulation beside that: one kernel
// at a time, one copy at a time in each direction, each engine first come, first served. Equal seeds and equal calls
// give equal results; the package starts no goroutine and reads no clock.
//
// Whatever the order was, two uses of the same bytes that nothing orders are an error (race.go), and so is what CUDA
// leaves undefined or does not report: copies from memory that is not pinned, waits for events that were never
// recorded, addresses after their release or without memory, memory that is unmapped while something uses it, handles
// that are left at Close.
package fakecuda
