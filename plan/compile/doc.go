// Package compile makes programs of plans.
//
// [Place] packs the residencies of a plan into an arena. [Compile] writes the commands of an iteration at these places,
// with the waits that keep every two uses of the same bytes in order. [Divide] cuts a program into groups for a job
// that shares memory, and [Contents] lists what its arena holds and when.
//
// Nothing here is trusted: [Prove] and [ProveGroups] hand what they make to package proof, which does not know how it
// was made.
package compile
