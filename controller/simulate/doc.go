// Package simulate trains the jobs of an arrival trace on many simulated devices in virtual time, and says when each
// one would have begun and ended. What is compared are ways of scheduling:
//
//   - [FIFO]: each job has a device for itself, and the others wait in the order in which they came;
//   - [Pack]: jobs that fit a device together, by what they need without a plan, train side by side;
//   - [Tensile]: the machines of controller, agent and executor as they are, stepped by this package instead of by
//     their runners.
//
// All three train on the same devices (package device/sim) by the same hosts (package executor), kernel by kernel and
// copy by copy. Iterations that are alike are not trained one by one: see [Options.Fold].
package simulate
