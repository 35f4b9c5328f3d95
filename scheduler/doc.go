// Package scheduler decides, for all jobs of a device at once, what is kept, swapped and recomputed.
//
// [Schedule] turns a [Request] (graphs, latencies, budget, link) into a [Result] (a plan, its layout and what was
// decided, per job). It is a pure function: equal requests give equal results. Policies are values in one table, looked
// up by name:
//
//	none-all   nothing is freed within an iteration: what frameworks without liveness do, and the paper's baseline
//	none-live  everything is freed after its last use: the honest baseline
//	tensile    swaps and recomputations until the packed plans fit the budget
//	tensile-paper  the method as TENSILE has it, on our slots: see below
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
//  2. gaps at a peak are swapped where both copies fit into free time of the copy lanes, largest storage first: out as
//     early, in as late as possible (swap). A copy out may begin when the content is made, while others still read it;
//  3. if that is not enough, storages are recomputed in the order of the time that their bytes take, as few as will do, and
//     swaps are planned anew around the steps that this inserts (chain, hybrid). What a repeated op reads may itself have
//     to be made again;
//  4. what then is above the target is forced, by whatever costs least for the bytes and steps that it frees: a swap that
//     stalls, or one recomputation more (force, recompute).
//
// Swaps are then relaxed: dropped later and fetched earlier where memory is free anyway (relax). The plans are packed;
// if the arenas do not fit the budget, the target is lowered by what is missing and the loop goes on (Schedule).
//
// Without a budget nothing is moved, or, if Request.Lowest asks for it, all swaps that cost no time and recomputations
// that cost a hundredth of it (lowest).
//
// # Times are exact, for what was predicted
//
// What step 2 books takes place as booked if ops take what was predicted. Inputs delay the first steps that read them, in
// a run without a plan too; these times are part of the time axis. A copy begins after the last step that has ended by its
// time, and copies of a lane follow each other in the order of their times: so each begins no later than booked, and a plan
// of free swaps has exactly the iteration time of no plan. A test holds that for random graphs, through program.Time, which
// knows nothing of bookings.
//
// # Speed
//
// A swap is decided in logarithmic time: peak.Curve has the peak after each change of a gap; an interval tree has the
// largest gap that covers a slot (stab); a treap of free stretches has the first and the last one that a copy fits into
// (free, lane). A naive planner in the tests, which simulates everything anew for each decision, takes the same ones. Gaps
// of storages below a thousandth of the peak are left out, and gaps tried in vain at one peak are tried again at others.
// Equal requests give equal plans; there is no search by floats in any policy.
//
// A meter counts the steps of all inner loops (meter). It asks the caller whether to stop, and ends a search at Options.Work
// steps, the same ones on every machine: what was found by then is taken, or refused.
//
// # Bounds
//
// Result has for each job the largest working set of a step, below which nothing is, and a bound for plans that swap without
// a stall and do not recompute (bounds): per slot, what two lanes can have carried if they work for this slot alone.
//
// # TENSILE's own form
//
// tensile-paper follows section IV: one channel for both directions, copies out after the access before the pause, swaps as
// far as they go whatever the budget, then the other accesses of a swapped tensor, Algorithm 3's stopping rule, and only then
// recomputation by MSPS, of accesses whose inputs were never released. It departs from the printed Algorithm 1 in what a
// peak is: a storage that comes in counts from the begin of its copy, and an op's outputs count beside its inputs, since both
// are there. The paper's sums leave that out and so may promise a peak that does not hold.
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
