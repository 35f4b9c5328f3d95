// Package bridge puts device/cuda/fakecuda behind CUDA's C interface, so that gorgonia.org/cu and device/cuda/driver
// are tested without a GPU (tag gpu): [Install] fills the slots of device/cuda/cudaabi with functions that call the
// fake.
//
// The fake is for one goroutine, and the driver's waiters are threads: a mutex lets one call in at a time.
// cuEventSynchronize asks the fake again and again whether the event has ended, which moves virtual time on, and lets
// others in between. When a waiter's thread comes by is up to the operating system, so that times of one seed differ
// from run to run here, and the host may know earlier than through the Go interface that an event has ended; which
// orders are legal, and results, are the same.
//
// The bridge objects to what only C can do wrong: a call on a thread without a context, a default stream, an event that
// takes no time or that threads spin for.
package bridge
