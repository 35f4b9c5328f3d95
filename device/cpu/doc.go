// Package cpu is the device that computes: float32 kernels over an arena of exactly the granted size, between guard
// pages, with another mapping as host memory. It is the embedded default and the reference for every bit.
//
// Each job has four lanes, goroutines locked to operating-system threads. A lane takes its commands in order, waits
// until the counts that a command names are reached, executes it, counts it as done. Jobs compute side by side as far as
// there are cores; the link limit, if there is one, is shared by all jobs of the device.
//
//	Issue --> queue of lane --> await points --> hold --> execute --> done[lane]++ --> Event to Next
//
// Kernels (device/cpu/kernel) allocate nothing and take their scratch from the arena. Results do not depend on timing,
// offsets or other jobs: one op, one way of computing it, one thread count.
//
// On request (Options.Trace) the device records malloc, free, read and write as its jobs' commands come to them
// (record.go), for pool/trace.
package cpu
