// Package explain says in numbers and sentences why a job is as fast as it is and what became of one of its storages.
// Like a plan it is a pure function: of a program and of how long its commands take, as predicted or as measured.
//
//   - [Stalls] names, for each time that the compute stream stands still, the copy that it waits for.
//   - [TimeOf] divides a measured iteration into parts that add up to it.
//   - [LifeOf] lists what happens to one storage in an iteration.
//   - [DecisionOf] puts a decision of a planner into the names of its graph.
//
// [Job] and [Storage] are whole answers: whoever knows the budget and the other jobs fills them in, as a controller
// does. Their WriteText prints sentences, their JSON form has durations in nanoseconds and sizes in bytes.
package explain
