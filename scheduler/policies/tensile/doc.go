// Package tensile is the policy tensile: it swaps and recomputes until the packed plans fit the budget.
//
// The peak slot of a job decides what is worth doing: only a gap that covers it helps (TENSILE, Algorithm 2). While
// the sum of the jobs' peaks is above the target,
//
//  1. updates move next to their gradients, which costs nothing (draft.EarlyUpdates);
//  2. gaps at a peak are swapped where both copies fit into free time of the copy lanes, largest storage first: out as
//     early, in as late as possible (draft.SwapFreely). A copy out may begin when the content is made, while others
//     still read it;
//  3. if that is not enough, storages are recomputed, cheapest per byte first and as few as possible, and swaps are
//     planned again around the steps that this inserts (chain, hybrid). What a repeated op reads may itself have to be
//     made again;
//  4. what then is above the target is forced, by whatever costs least for the bytes and steps that it frees: a swap
//     that stalls, or one recomputation more (force).
//
// Swaps are then relaxed: evicted later and prefetched earlier where memory is free anyway (Session.Finish). The plans
// are packed; if the arenas do not fit the budget, the target is lowered by what is missing and the loop goes on
// (tighten).
//
// Without a budget nothing is moved, or, if Request.Lowest asks for it, all swaps that cost no time and recomputations
// that cost a hundredth of it (lowest).
package tensile
