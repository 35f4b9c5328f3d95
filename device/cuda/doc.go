// Package cuda is the device on NVIDIA's GPUs.
//
// It stands on [Driver], which device/cuda/driver implements by gorgonia.org/cu, and internal/fakecuda without a GPU:
// this package is plain Go. The kernels are those of device/cuda/kernels.
//
// A job has a lane per stream of its program. Those of compute and of the copies are CUDA streams, the host lane is
// what Driver.Run carries out. Nobody waits for the GPU but Next: a command is put on its stream as soon as all that it
// waits for on other streams has been put there, where an event and a wait order the two, and all that it waits for on
// the host lane has ended (issue.go). So there are two counts of each lane, both by program.Lanes: what has been put,
// and what is known to have ended.
//
//	Issue --> queue of lane --> put on its stream --> watched event --> ended --> Event from Next
//	                        \-> host lane: runs ------------------------^
//
// Which events are watched follows from how soon the host must know: the newest of each lane, the one before a command
// that waits for another lane, and copies that the host lane may wait for. All commands of the lane before a watched
// one have ended with it (ended.go).
//
// A section that drains is put when all before it has ended. Pauses before copies are left out. Copies of a prologue
// give way to others by program.Arrivals when they are put, and only few of them are on the stream at a time.
//
// Times come from an event after each command, and one before it where the stream may have stood still, measured
// against an event at the section's begin.
package cuda
