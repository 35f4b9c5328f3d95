// Package scheduler holds the words of planning: what is asked, what is answered, and what is refused.
//
// A policy decides, for all jobs of a device at once, what is kept, swapped and recomputed. It turns a [Request]
// (graphs, latencies, budget, link) into a [Result] (a plan, its layout and what was decided, per job). It is a pure
// function: equal requests give equal results. Four storeys of packages stand on each other:
//
//	scheduler           Request, Job, Options, Result, Decision, errors; this package
//	scheduler/draft     what policies work with: sessions, drafts, gaps, copy lanes, packing
//	scheduler/policies  the table of policies by name, Schedule, shares of the link
//	    none            none-all, none-live: nothing is moved
//	    tensile         tensile: swaps and recomputations until the packed plans fit the budget
//	scheduler/rivals    the policies of others, to compare with
//
// Callers use policies.Schedule. A policy of another package is a row of a policies.Table.
//
// # Weights and rates
//
// A job's Weight is what its time is worth. Of swaps that cost no time, those go first that free most for their job's
// weight; of those that cost time and of recomputations, the cost counts Weight times; and what the budget leaves above
// the peaks is divided by weight. So a heavier job keeps more on the device. Equal weights, whatever they are, and the
// weight of a single job change nothing.
//
// A job's MaxSwapRate limits the storages of it that are swapped. TENSILE has two definitions (IV-C). Its text takes
// the tensors swapped in a job over those swapped in the whole system: with one job that is 1 whatever is swapped,
// the same low rate for every job allows no swap at all, and what a job may swap depends on the order in which jobs
// are looked at. Its Algorithm 2 (line 29) compares the number of the job's own swapped tensors with the job's own
// limit; that is what is done here, with the rate of the job's swappable storages as the limit. It departs from the
// algorithm in two points: the limit is never exceeded by one, and updated parameters are not exempt from it.
// Recomputation is not limited.
package scheduler
