// Package report says what plans save and what runs have cost: metrics, tables, drawings, and what changed between
// plans.
//
//	planner.Planned + planner.Peaks --MemoryOf--> Memory per job --NewPlan--> Plan      what tensile plan prints
//	Run, planned and vanilla --------------------------+--Compare--> Training           what tensile run prints
//
// The vanilla run trains the same jobs together under the policy none-live: nothing moves, and memory is freed after
// the last use. The metrics are those of TENSILE, section V-A:
//
//   - MSR compares slot peaks: (V - E)/V, with V of the policy none-all or none-live and E of the plan. Both include
//     scratch.
//   - EOR compares times: E/V of the mean iteration, block by block, without the first iteration of a block.
//   - Start EOR compares the time from when the first of all jobs leaves Home to the end of a job's first iteration.
//   - CBR is MSR (live) divided by EOR.
//
// A report is a value whose JSON form is the output of --json, with a method that prints it as a table.
package report
