// Package dtr is Dynamic Tensor Rematerialization (Kirisame et al., ICLR 2021, arXiv 2006.09616) by the rules of its
// authors' simulator (simrd of uwsampl/dtr-prototype: runtime v2 with eager eviction). The method sees one op after the
// other, makes again what an op needs and is not there, and evicts when something does not fit.
//
//	an op        its inputs are locked; those that are away are made again, each by the same steps; then the storage
//	             of least h leaves until the outputs fit; the op runs and the inputs are unlocked
//	h            c / (m * s): what it costs to make a storage again, over its bytes and the time since its last access
//	             (heuristic.go); of equal ones the last unlocked goes
//	last use     what no later op of the graph uses is evicted at once, and can still be made again
//	pinned       parameters and states, throughout; the batch, and what cannot be made again (lose.go)
//	failure      nothing is left to evict, or repetitions take longer than the iteration itself
//
// The policies dtr and dtr-eq are h_DTR and h_eq; Options has the paper's other heuristics. Nothing is sampled, so that
// equal requests have equal plans. Costs are predicted latencies, not measured ones, and choosing victims takes no
// time here: the paper's search overhead is left out.
//
// # What becomes of it here
//
// The steps of one iteration are recorded and become a plan, which every iteration follows: what is evicted leaves as
// soon as it is not used until then (replay.Steps), since that is known now. Steps and capacity are those of the run.
//
// The authors' runs end with the gradients. Here an iteration has the updates, and begins anew with the updated
// parameters: nothing that was made of a parameter can be made again after its update. What is still to be used of
// that is made again before the update, and pinned. Where all updates come last, these are all gradients, which is how
// simrd ends a run. simrd copies what is overwritten instead.
//
// A repeated op makes those of its outputs that are away. simrd has it make all, and frees what was there twice.
package dtr
