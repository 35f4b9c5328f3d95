// Package device says what a device is: something that runs the commands of several jobs on lanes and owns time.
//
// A [Device] opens a [Job] per job, which has an arena on the device and slots on the host. [Job.Load] binds a proven
// program to it: regions to this memory, streams to lanes. The units that lanes run on, compute and the two
// directions of the link, belong to the device and are shared by its jobs. The sections of the program are issued in
// the order of their execution; within its lane a command runs after the one before it, and not before the points
// that it waits for (program.Lanes is that arithmetic). What has ended is learned from [Device.Next], with the
// device's own times, so that the same runner drives a device in virtual time.
//
// A job may load another program whenever it is in Home, also one of another graph, as long as the two graphs keep the
// same storages on the host (program.Match).
//
// [Job.Snapshot] reserves memory for the state of a job, to which the snapshot section of a program copies it. That
// memory is its owner's and not the job's: it stays until its Release.
//
// A device that is a [Pager] can back a part of an arena: [PagedJob].Hold says which pages. Sections are issued in
// parts then, so that a job holds what its commands in flight need, and other jobs use the rest.
//
// device/sim keeps virtual time and no data, device/cpu computes in float32. devicetest holds the suite that every
// device passes.
package device
