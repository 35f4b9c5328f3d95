// Package local trains tasks on a device of this process by the same machines as a cluster does: a controller's machine
// admits the jobs, has plans made and grants them; an agent's machine has a host train them on the device. One
// goroutine steps all of them in turn, on the device's clock, and hands messages over in the order in which they were
// sent. Plans take no time of a simulated device. So equal inputs give equal outputs there, to the byte.
//
//	controller.Machine -- orders --> agent.Machine -- programs --> executor.Host -- sections --> device
//	     ^  | ^                        |     ^                        |    ^                       |
//	     |  | +-- statuses, reports ---+     +-------- events --------+    +------- events --------+
//	 plans  v
//	controller.Planner
//
// [Train] is how run works on simulated devices and how calibrate measures. An [Evaluation] tries a trained network on
// images that it has not seen.
package local
