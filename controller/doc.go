// Package controller is the global controller (TENSILE, section III-D): it admits jobs to a device, plans for all of
// them together, has executors carry the plans out, and plans again when jobs come and go and when measured latencies
// drift.
//
// A [Machine] decides. Its inputs are submissions, statuses, reports, the end of processes and the time. Its outputs
// say what is to be stored, sent, started and planned. It starts nothing, reads no clock and talks to nobody. [Run] is
// the runner: it connects the machine with executors and command lines over a bus, starts executors' processes, and has
// plans made.
//
//	submitted --> queued --> starting --> running --> finished     unknown: the executor of a job that was starting
//	    |          ^  ^         |            |                       or running is out of reach
//	 refused       |  +---------+------------+  executor lost      stopping: somebody has asked for the job's end
//	               |            |            |                     failed, stopped: from any state, or after stopping
//	               +-- parked <-+- parking <-+  to rest, or to give way
//
// Only job.enter writes the state of a job, by a table of what may follow what. What an executor says of a job is
// recorded first (job_status.go); what becomes of the job follows from that by package recovery (outcome.go), and is
// carried out by the functions beside enter (jobstate.go).
//
// Plans are requested. The machine emits a [plans.Request] for all jobs that are admitted, and perhaps for those that
// wait, and goes on. A [plans.Worker] makes the plans, which takes seconds. Its answer, a [plans.Result], counts for
// the jobs that still go on then:
//
//	Step: a job comes or goes, latencies drift --> Output.PlanRequest --> plans.Worker: profile, schedule, prove
//	Step: grant what fits, store, order        <-- Input.PlanResult   <--+
//
// A device has one request open at a time. A request that only looks for better plans is cancelled when a job waits to
// be planned for.
//
// Memory is never promised twice. A job counts with the largest arena among the layout in force and those that it was
// granted since (job.claim). A layout no larger than that is granted at once. A larger one is granted when the claims
// of all jobs then fit the budget. So arenas shrink first, and grow when that is acknowledged.
//
// A record of each job, its graph and its layouts are stored before an executor hears of them. A controller that takes
// the place of one that was killed finds them, and goes on. Meanwhile executors train with their last layouts.
package controller
