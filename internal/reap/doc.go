// Package reap sees to it that no process of a test outlives the tests. Executors and leases are started so that they
// outlive who starts them; a test binary that dies, as one does that runs out of time, would leave them training for
// ever.
//
// Linux gives the children of a process that ends to the nearest ancestor that asks for them (PR_SET_CHILD_SUBREAPER).
// A process that has called [Adopt] is that ancestor. [KillLeftovers] waits for all it has adopted, ends those that
// stay, and names them. [Main] runs the tests of a package in a process of its own below one that does both, and
// internal/testrun does both for the whole suite. On other systems nothing is adopted and nothing is left.
package reap
