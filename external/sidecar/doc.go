// Package sidecar is a sidecar's side of what package external describes: it has a script's iterations planned, and
// sees to it that what the script has on the device stays within a limit.
//
//	hello ------> limit
//	graph ------> plan it (an errand) -----> plan, or why there is none
//	iteration --> what the allocator reserves beyond the plan is the reserve: is it too much for the limit, plan
//	              lower; do ops take longer or shorter by far than the plan was made for, plan again
//	end, EOF ---> over
//
// A [Machine] decides. It is told what the script says, what was planned, and that it is to stop, and answers with what
// is to be sent, planned and told to people. It starts nothing and reads no clock. [Make] is the errand.
//
// Invariants:
//   - what the script says out of turn, or of plans and graphs that are not, ends the conversation with an error; the
//     script trains on with the plan that it has;
//   - one errand is under way at a time, for the newest of what is to be planned;
//   - the reserve is measured in iterations that followed a plan, from the second on, and never assumed: it only rises.
package sidecar
