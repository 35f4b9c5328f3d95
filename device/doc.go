// Package device says what a device is: something that runs the commands of several jobs on lanes and owns time.
//
// A [Device] opens a [Job] per job, which has an arena on the device, a region of host memory and one lane of each kind
// (program.Lane). Compute and link belong to the device and are shared by its jobs. A job's sections (program.Section)
// are issued in the order of their execution; within its lane a command runs after the one before it, and not before
// the points that it waits for. What has ended is learned from [Device.Next], with the device's own times, so that the
// same runner drives a device in virtual time.
//
// device/sim keeps virtual time and no data, device/cpu computes in float32. devicetest holds the suite that every
// device passes.
package device
