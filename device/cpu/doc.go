// Package cpu is the device that computes: float32 kernels over an arena of exactly the granted size, between guard
// pages, with another mapping as host memory. It is the embedded default and the reference for every bit.
//
// Each job has a lane per stream of its programs, a goroutine locked to an operating-system thread. A lane takes its
// commands in order, waits until program.Lanes says that a command may start, executes it, and says that it has ended.
// Jobs compute side by side as far as there are cores; the link limit, if there is one, is shared by all jobs of the
// device.
//
//	Issue --> queue of lane --> ready --> hold --> execute --> ended --> Event to Next
//
// Loading another program (loaded.go) leaves the host slots of what lives on the host where they are, and maps those of
// what its plan copies out within an iteration again: a job takes no more of the host than its program says.
//
// A job that has called Hold has an arena of addresses without memory (pages_linux.go). Pages of 2 MiB that are held
// get theirs when they are used, by large pages of the system; those that are not cannot be used, and their memory is
// the system's again. Such an arena begins at a page, so that its end lies at the guard to the system's page.
//
// Kernels (device/cpu/kernel) take their scratch from the arena, and are divided among a crew of threads that all jobs
// share. Results do not depend on timing, offsets, other jobs or the number of threads: one op, one way of computing
// it. The gradient of a convolution's input has variants with other scratch that compute the same sums in the same
// order.
//
// On request (Options.Trace) the device records malloc, free, read and write as its jobs' commands come to them
// (record.go), for plan/pool/trace.
package cpu
