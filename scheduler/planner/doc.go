// Package planner is the way from jobs to proven plans. It is the one place that assembles a [scheduler.Request], and
// the one that has it scheduled, packed and proven:
//
//	device + latencies --Describe--> Device --Profile--> Profile --Job--> scheduler.Job
//	                              |                                      |
//	                              +-------------- Request <--------------+
//	                                                 |
//	                        Plan: policies.Schedule, compile.Prove per job --> Planned
//
// The command line, the controller and the benchmarks plan through it, so that all of them ask the scheduler the same
// question about the same job. A request is plain data: the caller sets policy, budget, priorities and switches in its
// fields. A [Session] does that for tasks on a device: it has the latencies of its [Sources], reads budgets in percent,
// finds the least memory and settles how jobs share it. A [Curve] asks for many budgets. [Plan] reads the clock only to
// say how long planning, packing and proving took.
package planner
