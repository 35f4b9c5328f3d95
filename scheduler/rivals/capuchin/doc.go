// Package capuchin holds Capuchin (Peng et al., ASPLOS 2020), and its passive mode alone:
//
//	lru       passive mode: what an op needs is copied in on demand, what was not used for longest leaves
//	capuchin  the first iteration in passive mode; the next ones by a guide that is made from what it has seen
//
// The paper's full text was not at hand. Numbers in brackets are its sections, as public reading notes and the
// re-implementation by TENSILE's authors (tinyflow, capuchinadam.py) have them; "not confirmed" is said where
// these do not agree or say nothing.
//
// # From an observed iteration to a guide
//
// An iteration has a list of accesses: storage, count, time (5.1). The interval between two accesses of a storage, the
// evicted-access and the back-access, is a candidate if it reaches over an op that does not fit the capacity (4.5):
//
//	op          0     1     2     3     4     5     6
//	accesses    a           .     .           .     a
//	                  the peak [========]
//	copy out     [=====)                                  after the evicted-access
//	copy in                               [=====)         triggered by the access at the end of op 4
//
// Candidates are taken by their free time, the longest first: FT = (back-access - swap time) - (evicted-access + swap
// time) (4.3). A copy in that an in-trigger hides wholly is a swap; if none does, what saves most memory per second of
// its replay (MSPS) is recomputed in its place where that takes less than the exposed copy in (Algorithm 1, hybrid),
// and the replays of all others are put right (Algorithm 2, recompute). That ends when all ops fit, which covers the
// bytes that were evicted passively; "how many bytes to save" is not confirmed.
//
// # What executes a guide
//
// A machine in virtual time turns the guide into a plan. Copies out are decoupled from compute: the bytes return when a
// copy has ended, and only an op that does not fit waits. A triggered copy in waits until its lane is free and, by what
// is expected, there is room for it up to its back-access, so that it does not lie in the peak (4.4). What was made on
// the way of a replay stays while there is room (collective recomputation, 4.4), the first one leaves first. Whatever
// the guide leaves over is evicted passively.
//
// Storages that persist leave within an iteration as others do, and passively; they return in the next iteration on
// demand alone, since Capuchin never swaps across iterations of its own accord (TENSILE II).
//
// # Feedback
//
// With reports (scheduler.Request.Reports) the first plan is that of passive mode and asks for a report. The next one
// is guided by the measured latencies. A report of a guided iteration moves in-triggers whose copies came late ahead,
// by 5 % of the swap time (4.4), to an access at which the plan has room; of copies that queued, the first one's. When
// none moves the policy asks no more.
// Moves add up: whether the paper's do, or grow, is not confirmed. Without reports the observed iteration is the
// predicted one.
package capuchin
