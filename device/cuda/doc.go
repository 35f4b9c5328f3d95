// Package cuda is the device on NVIDIA's GPUs.
//
// It stands on [Driver], which device/cuda/driver implements by gorgonia.org/cu, and device/cuda/fakecuda without a
// GPU: this package is plain Go. The kernels are those of device/cuda/kernels.
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
// Which events are watched follows from how soon the host must know: the last of each lane in what was issued with it,
// those that the host lane waits for, and copies of a prologue. All commands of the lane before a watched one have
// ended with it (ended.go).
//
// A section that drains is put when all before it has ended. Pauses before copies are left out. Copies of a prologue
// give way to those of other prologues by program.Arrivals when they are put, and only few of them are on the stream at
// a time. Meanwhile the newest command of each lane is watched too, so that it is known how far the job has come.
//
// The arena of a job is one allocation, or, once the job has called Hold, reserved addresses to whose pages memory is
// mapped (pages.go). [Device.Paging] is the device as a device.Pager, if its driver can do that.
//
// Times come from an event after each command, and one before it where the stream may have stood still, measured
// against an event at the section's begin.
package cuda
