// Package draft is what policies work with: plans in the making.
//
// A [Session] is one request while it is being planned. It begins the [Draft]s of the jobs, with the jobs' shares of
// the link, counts the work, and packs the finished plans.
//
// A Draft holds one job's steps and the gaps between the accesses of each storage (TENSILE's tensor accesses). The last
// gap of a persistent storage wraps round to the next iteration. Every gap is kept, swapped or recomputed:
//
//	slot      0    1    2    3    4    5    6    7
//	access    W         R                   R          of an activation
//	gap                 |--- from 2 to 6 ---|
//	swapped   [=============)          [====)          drop after 2 (out has ended), in after 4
//	free                     3    4
//
// # Invariants
//
//   - Gaps of one storage lie apart and in order; none is empty: To is at least From+2.
//   - Where a gap is not kept, From <= Drop < In < To, and the storage is away in the slots Drop+1 to In.
//   - The curve is the footprint by what is decided. TestSameDecisions compares it with a simulation.
//   - Each copy of a swap that was fitted or forced is booked on a lane. While no step was inserted (lanes.exact),
//     booked copies of a lane do not overlap, except where a forced one had to.
//   - A draft changes nothing of another one. Clones share booked lanes until one of them books.
//   - Every plan that Draft.Plan writes passes proof.Validate; Session.Place checks that.
//
// # Times are exact, for what was predicted
//
// What [Draft.Try] books takes place as booked if ops take what was predicted. Inputs delay the first steps that read
// them, in a run without a plan too; these times are part of the time axis. A copy begins after the last step that
// has ended by its time, and copies of a lane follow each other in the order of their times: so each begins no later
// than booked, and a plan of free swaps has exactly the iteration time of no plan. A test holds that for random
// graphs, through program.Time, which knows nothing of bookings.
//
// # Speed
//
// A swap is decided in logarithmic time: peak.Curve has the peak after each change of a gap; an interval tree has the
// largest gap that covers a slot (stab); a treap of free stretches has the first and the last one that a copy fits into
// (free, lane). A naive planner in the tests, which simulates everything again for each decision, makes the same
// decisions. Gaps of storages below a thousandth of the peak are left out, and gaps tried in vain at one peak are
// tried again at others. Equal requests give equal plans: no search uses floats.
//
// A meter counts the steps of all inner loops (meter). It asks the watch whether to stop, and ends a search at
// Options.Work steps, the same ones on every machine: what was found by then is taken, or refused.
//
// # Bounds
//
// A session has for each job the largest working set of a step, below which no plan is, and a bound for plans that swap
// without a stall and do not recompute (bounds): per slot, what two lanes can have carried if they work for this slot
// alone.
package draft
