// Package replay turns a run-time method into a plan.
//
// A run-time method decides while an iteration goes on: it sees one op after the other, and when an op does not fit, it
// names what has to leave the device. [Plan] goes through the ops in the order of the graph, asks the method, and
// writes down what happens as steps and moves:
//
//	before a step   what it touches and is not on the device is copied in; while that does not fit, the method's
//	                victims are copied out, unless the host has their content, and dropped
//	after a step    complete outputs of the job are copied out; what is never used again is dropped
//
// The iteration is repeated, with the method's memory of it, until it ends as it began: with the same storages on the
// device and the same host copies. If that takes too many rounds, everything leaves the device at the end of the
// iteration. Either way the plan passes proof.Validate, and no slot holds more than the capacity.
//
// [Steps] writes the plan of a method that repeats ops and copies nothing, from the steps alone.
package replay
