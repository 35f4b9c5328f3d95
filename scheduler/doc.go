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
//
// # Several jobs
//
// A job's Weight is what its time is worth. Of swaps that cost no time, those go first that free most for their job's
// weight; of those that cost time and of recomputations, the cost counts Weight times; and what the budget leaves above
// the peaks is divided by weight. So a heavier job keeps more on the device. Equal weights, whatever they are, and the
// weight of a single job change nothing.
//
// A job's MaxSwapRate bounds the storages of it that are swapped. TENSILE has two definitions (IV-C). Its text takes the
// tensors swapped in a job over those swapped in the whole system: with one job that is 1 whatever is swapped, the same
// low rate for every job allows no swap at all, and what a job may swap depends on the order in which jobs are looked at.
// Its Algorithm 2 (line 29) compares the number of the job's own swapped tensors with the job's own limit; that is what is
// done here, with the rate of the job's swappable storages as the limit. It departs from the algorithm in two points: the
// limit is never exceeded by one, and updated parameters are not exempt from it. Recomputation is not limited.
//
// Each direction of the link is divided between the jobs in whole parts that add up to at most the link. A job demands
// the bytes that its plan copies over the time of its steps. Plans are made with even shares and, if demands are uneven,
// once more with shares by demand; the plans with less weighed slowdown by program.Time are kept. Then each job gets a
// floor, an eighth of an even share, and a part of the rest that goes by the square root of weight times demand, which
// makes the weighed sum of demand/share, the time spent on copies, least. These shares stand in the Result, unless the
// slowdown is less with those planned with.
package scheduler
