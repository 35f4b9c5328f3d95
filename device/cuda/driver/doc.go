// Package driver is [tensile/device/cuda.Driver] on CUDA's own driver, by gorgonia.org/cu. It is built with the tag gpu
// (`make gpu`), against the header and library of device/cuda/cudaabi: without the tag it is empty.
//
// Importing it loads nothing. Load loads the driver's library, libcuda.so.1, and says what is missing where that
// fails; New makes a Driver whose calls go there, or to the fake driver that device/cuda/fakecuda/bridge puts in its
// place.
//
// # Threads
//
// The caller's goroutine makes all calls but one: each stream has a goroutine of its own, locked to its thread, that
// waits in cuEventSynchronize for the events that are watched, in their order, and hands each token to Next. The thread
// sleeps there and does not spin. After an error of the device the wait returns at once, with the error, so that none
// is left behind. All goroutines have ended when Close returns.
package driver
