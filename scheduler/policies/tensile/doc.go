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
//     made again, or is kept for it;
//  4. if that is not enough either, or costs more than waiting for copies, steps wait where the peaks are, so that
//     more swaps fit onto the lanes (draft.Stretch), and swaps are planned between these.
//
// The plans are packed, with swaps relaxed where they then still fit: evicted later and prefetched earlier where memory
// is free anyway (Session.Finish). If the arenas do not fit the budget, the target is lowered by what is missing; if
// they leave much of it unused, it is raised again; of the plans that fit the one that loses least is taken (tighten).
//
// Without a budget nothing is moved, or, if Request.Lowest asks for it, all swaps that cost no time and recomputations
// that cost a hundredth of it (lowest).
package tensile
