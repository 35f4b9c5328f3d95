// Package plan holds the schedule of one iteration.
//
// A [Plan] lists [Step]s in issue order, one per execution of an op, and [Move]s that hang on them. The step index, or
// slot, is the only time axis: which bytes belong to whom is stated per slot, and predicted times only rank choices.
//
//	slot         0     1     2     3     4     5
//	step         f0    f1    f2    b2    b1    u0
//	x made by f0 [==========)             [===)         two residencies of x: slots [0,2) and [4,5)
//	moves           Out x after 0
//	                   Drop x after 1
//	                            In x after 3
//
// A move starts when step After has ended. In owns its bytes from slot After+1 on, Drop frees them from slot After+1
// on, Out leaves the storage where it is. A swap is Out, Drop and In; a release is a Drop; a recomputation is a second
// Step of an op. Copies with After = -1 belong to the end of the previous iteration, before slot 0; what is to leave
// the device there is dropped after the last step. Moves after the same step happen in the order out, drop, in.
//
// Entry lists the storages on the device when slot 0 begins, which are also those there after the last slot, so that
// the iteration can be repeated. A residency that reaches the last slot of a storage in Entry goes on in slot 0 of the
// next iteration and keeps its place.
//
// Whether a plan is valid does not depend on time, and package proof checks it: every op runs, with its inputs in the
// right version on the device; an op that updates what outlives the iteration runs once, a storage of several versions
// is made again from the first on; no stale host copy is copied in; nothing is lost; the iteration ends as it began.
// Where all ops are opaque, a script runs them: in their order, with all their outputs and the scratch that the graph
// says; what it holds (graph.Storage.Until) is there until it lets it go.
package plan
