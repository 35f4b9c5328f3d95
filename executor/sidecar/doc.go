// Package sidecar is a sidecar's side of what package external describes: it has a script's iterations planned, and
// sees to it that what the script has on the device stays within a limit.
//
//	hello ------> limit
//	graph ------> have it planned ---------> plan, or why there is none
//	iteration --> what the allocator reserves beyond the plan is the reserve; what ops take is compared with what the
//	              plan was made for
//	end, EOF ---> over
//
// Processes come in by a [Door], and each has a machine of its own. There are two machines for that. A [Machine] keeps
// a script within a limit and has it planned for alone, by [Make]. A [Guest] has it be a job of a controller, from
// which the plans come: it speaks to an agent as an executor.Host does, and a [Host] is its runner. Machines are told
// what the script says, what was planned or ordered, and that it is to stop, and answer with what is to be sent,
// planned and told to people. They start nothing and read no clock.
//
// Invariants:
//   - what the script says out of turn, or of plans and graphs that are not, ends the conversation with an error; the
//     script trains on with the plan that it has;
//   - one errand is under way at a time, for the newest of what is to be planned;
//   - the reserve is measured in iterations that followed a plan, from the second on, and never assumed: it only rises;
//   - a guest's plan that takes less than the one before is acknowledged when an iteration has followed it to its end,
//     others when the script has taken them; a job that rests has nothing on the device, and one that has ended has no
//     process;
//   - no script is ever killed.
package sidecar
