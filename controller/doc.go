// Package controller is the global controller (TENSILE, section III-D): it admits jobs to a device, plans for all of
// them together, has executors carry the plans out, and plans again when jobs come and go and when measured latencies
// drift.
//
// A [Machine] decides. It is told of submissions, statuses, reports, the end of processes and the time, and answers
// with what is to be stored, said, started and planned; it starts nothing, reads no clock and talks to nobody. [Run] is
// the runner: it has the machine talk to executors and command lines over a bus, starts their processes, and has plans
// made.
//
//	submitted --> queued --> starting --> running --> finished
//	    |           |            |           |------> failed
//	 refused        +------------+-----------+------> stopped
//
// A plan is an errand. The machine asks for one ([PlanRequest]), for all jobs that are admitted and perhaps those that
// wait, and goes on; a [PlanWorker] makes it, which takes seconds; the answer ([PlanResult]) counts for the jobs that
// still go on then:
//
//	Step: a job comes or goes, latencies drift --> Output.Plan --> Planner: profile, schedule, prove
//	Step: grant what fits, store, order        <-- Input.Planned <--+
//
// One errand is made at a time. One that only looks for better plans is cancelled when a job waits to be planned for.
//
// Memory is never promised twice. A job counts with the largest arena among the layout in force and those that it was
// granted since ([job.claim]). A layout no larger than that is granted at once, one that grows when the claims of all
// jobs then fit the budget, so that arenas shrink first and grow when that is acknowledged.
//
// A record of each job, its graph and its layouts are stored before an executor hears of them: a controller that was
// killed finds them again, and goes on. Executors train with their last layouts in the meantime.
package controller
