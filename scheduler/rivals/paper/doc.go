// Package paper is the policy tensile-paper: the method of the TENSILE paper, section IV, on our slots.
//
// It has one channel for both directions, copies out after the access before the pause, swaps as far as they go
// whatever the budget, then the other accesses of a swapped tensor, Algorithm 3's stopping rule, and only then
// recomputation by MSPS, of accesses whose inputs were never released. Each copy of a swap has the paper's trigger, the
// last step that has ended when the copy is to begin, and its delta, plan.Move.Delay, after which it begins (III-A,
// III-D, Fig. 3(c)). Plans in which something is recomputed have no deltas: the steps that this inserts move what was
// booked.
//
// It departs from the printed Algorithm 1 in what a peak is: a storage that comes in counts from the begin of its copy,
// and an op's outputs count beside its inputs, since both are there. The paper's sums leave that out and so may promise
// a peak that does not hold.
//
// tensile-authors is the same plan with the waits of the authors' executor: see [Authors].
package paper
