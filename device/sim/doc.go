// Package sim is a device in virtual time, without data: what program.Time predicts for one job, and beside it what the
// prediction leaves out: noise, latencies that are wrong, contention between jobs, and the pauses before copies.
//
// A [Device] is a discrete-event simulation that [Device.Next] drives. Every job has a lane per stream of its program
// (program.Lanes). The first command of a lane is blocked until its waits are reached, then, if it is a copy with a
// Hold, held, then, if it is a kernel, launched, then it runs:
//
//	blocked --waits reached--> held --pause over, or a lane waits for it--> launching --> running --> ended
//
// A kernel's time is launch and work: the part up to cost.Facts.Launch, and the rest. Launches do not compete. The
// commands that run on the same unit divide the compute unit or the link direction evenly: n of them progress at 1/n
// each. A copy's latency counts as work too. Loads, reads and poisoning take no time. docs/simulator.md tells what
// follows from that and what does not. A copy of a prologue that is held may also yield to copies of other lanes
// (program.Arrivals), until something has ended.
//
// Invariants:
//   - a single job without noise and holds runs exactly as program.Time says, to the nanosecond;
//   - equal calls give equal events, in the same order: of what ends at one instant, jobs in the order of their opening
//     come first, then lanes, but nothing comes before what it waited for;
//   - virtual time moves only inside Next, and only to the next instant at which something ends.
//
// With Options.Fault arenas are unified memory, and a kernel is faulting before it launches, if pages that it uses are
// on the host (unified.go).
//
// Of an arena that is backed in part the pages that are held count (Hold), and a command that uses others panics.
// [Device].PeakHeld is the most memory that all jobs had together.
//
// The first variant of an op needs no scratch, as the implicit GEMM of a convolution needs none. Convolutions have
// others with workspaces (variants.go). The ends that Touched reports are those of program.Program.Reach.
package sim
