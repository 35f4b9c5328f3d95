// Package scheduler decides, for all jobs of a device at once, what is kept, swapped and recomputed.
//
// [Schedule] turns a [Request] (graphs, latencies, budget, link) into a [Result] (a plan, its layout and what was
// decided, per job). It is a pure function: equal requests give equal results. Policies are values in one table, looked
// up by name:
//
//	none-all   nothing is freed within an iteration: what frameworks without liveness do, and the paper's baseline
//	none-live  everything is freed after its last use: the honest baseline
//	tensile    swaps and recomputations until the packed plans fit the budget
//
// # How tensile works
//
// A draft holds one job's steps and the gaps between the accesses of each storage (TENSILE's tensor accesses). The last
// gap of a persistent storage wraps round to the next iteration. Every gap is kept, swapped or recomputed:
//
//	slot      0    1    2    3    4    5    6    7
//	access    W         R                   R          of an activation
//	gap                 |--- from 2 to 6 ---|
//	swapped   [=============)          [====)          drop after 2 (out has ended), in after 4
//	free                     3    4
//
// The peak slot of a job decides what is worth doing: only a gap that covers it helps (Algorithm 2). While the sum of
// the jobs' peaks is above the target,
//
//  1. updates move next to their gradients, which costs nothing (order);
//  2. gaps at a peak are swapped where both copies fit into free time of the copy lanes, largest storage first (swap);
//  3. then whatever costs least for the bytes and steps that it frees: a swap that stalls, or a recomputation
//     (force, recompute).
//
// Swaps are then relaxed: dropped later and fetched earlier where memory is free anyway (relax). The plans are packed;
// if the arenas do not fit the budget, the target is lowered by what is missing and the loop goes on (Schedule).
package scheduler
