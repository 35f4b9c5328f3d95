// Package lease decides which jobs hold how many pages of one device's memory, and when. Its [Machine] is pure: it is
// told inputs and answers with outputs, reads no clock, and knows nothing of programs. Only counts of pages reach it.
//
//	        Join            First of an iteration        Last of it             Leave
//	Home ----------> idle -----------------------> begun -----------> idle ------------> Home
//	                 holds Base                    holds what its     its hold falls to Base by itself,
//	                                               groups ask for     for it needs no grant any more
//
// A job asks for each group of its iteration: [Want]. It holds what it was granted until it says [Passed] with less.
// Groups that are in flight end by themselves, and so does an iteration whose last group was granted.
//
// # The rule
//
// The order is that of the iterations that have begun (their First was granted) and wait for more groups (their Last
// was not), oldest first. All other jobs that have joined are idle. A Want is granted if, with hold and rest of the
// job that asks as they would be,
//
//	(T)  sum of all holds  <=  C
//	(S)  sum of Base, idle jobs  +  sum of Base, jobs older than i  +  max(rest(i), hold(i))
//	     +  sum of hold, jobs younger than i  <=  C         for each i of the order no younger than the job that asks
//
// where rest(i) is the largest number of pages that a group of i still needs. A First appends its job as youngest; a
// Join adds its Base to the idle ones. (S) of i says: when all that is older than i has ended, i can end even if
// nothing younger gives anything back.
//
// A First is not granted while the oldest of the order asks, and (T) alone is in its way: the idle jobs hold more than
// their Base. Two of them could go on in turns with what each still holds, and never come down to it.
//
// # What holds under any timing
//
// P0, never above the capacity: a grant that raises a hold keeps (T), and nothing else raises one.
//
// P4, no deadlock and no starvation:
//   - (S) is invariant. A grant to k raises hold(k) alone: the jobs older than k are checked, those younger see
//     Base(k) as before. Passed lowers holds. A First is checked against all. When the Last of k is granted, k becomes
//     idle: younger jobs saw Base(k) before and do now, older ones saw hold(k) and now see Base(k), which is no more,
//     since the last group of an iteration needs Base (a Want that says otherwise is refused).
//   - So the oldest ends. Nobody is older, so (S) lets it have any group while none of its own is in flight: such a
//     group needs at most rest. (T) follows from (S) of the oldest once the idle jobs have fallen to their Base, which
//     they do by themselves: while the oldest waits for that none of them begins another iteration, and each of the
//     order comes to be idle only once. Then the next is oldest.
//   - A First or Join does not wait for ever. They wait in one queue, least served first (pages x time / weight). What
//     fits may be granted before one that does not, but only [Options].Overtakes times, and a First only while its job
//     is ahead by less than one iteration; from then on nothing behind it is granted, the order empties, the jobs that
//     wait in the queue give back all but their Base, and then it fits. That it would is checked first: a request that
//     could not be granted even then (the bases of others are in its way) holds up nobody. The first of those held up
//     is the least served of them, so that some job of the queue is ahead of none.
//
// # Methods
//
// A [Method] may delay what the rule allows, so (T) and (S) hold whatever it says: P0 and the first two parts of P4
// stay. A method that delays for ever does not keep a job from going on, by two limits (method.go):
//   - A delay ends when nobody goes on by himself: each job of the order asks, and no idle job holds more than its
//     Base. Then the oldest of the order has what it asks for, or, if nobody of the order goes on, the first of the
//     queue. So some iteration always goes on.
//   - A delay ends when Options.Overtakes iterations have begun since it began, or two for each job if these are more:
//     a method may have the jobs train in rounds.
//
// In the queue a First that is delayed counts as one that does not fit. A Join is never delayed.
//
// # A job that stands still
//
// One that holds what others wait for and says nothing for Options.Still, though it does not wait itself, is told to
// Drain; so is one that waits for its First and still holds more than its Base. After as long again nobody counts on
// it: the others go before it in the order, each if (S) holds for it there. Nothing is taken from it. What it says next
// puts it back among those that go on (still.go).
//
// # A lower capacity
//
// Nothing is revoked. (S) was a promise to every iteration that has begun: the oldest one may still use it, all
// else is measured against the new capacity. So the sum of holds falls to it as fast as the iterations end.
// Jobs that cannot begin another iteration within the new capacity beside the bases of the others are told to Drain:
// those whose Peak alone is above it, then the youngest by their Join, until the others fit.
package lease
