// Package waterwave is the scheduler of Waterwave (Shi, Peng, He, Zhao, Jin: Waterwave: A GPU Memory Flow Engine for
// Concurrent DNN Training, IEEE TPDS 2023) as a method of a lease: node groups that allocate are issued together with
// node groups of another job that deallocate, so that memory flows from one job to the other.
//
//	pair   0     1     2     3     4     5     6     7     8
//	av     J1NG1 J1NG2 J1NG3 J2NG1 J2NG2 J3NG1 J3NG2 J3NG3
//	dv                       J1NG4 J1NG5 J1NG6 J2NG3 J2NG4 J3NG4
//
// Jobs go in rounds, of an iteration of each. For a round [Pairs], Algorithm 1, puts the node groups of all jobs into
// pairs, and the barrier between two of them (CounterBarrier, section 4.3) delays a group until all node groups of the
// pairs before its own are issued. Waterwave's words and what stands for them:
//
//	node group, split_size (4.4)        groups of a job's list whose pages grow or shrink by Options.Split together
//	ANG, DNG                            node groups up to the one in which the pages are at their peak; the others
//	memory limit, peak memory           what the capacity leaves of the sum of the Bases, which Waterwave keeps on the
//	                                    device too; a job's Peak less its Base
//	prev_count, succ_count              what is left of the pairs before, counted per job as its next node group
//	the allocator of 4.2                pool.Streams; here the lease: pages that were given back
//	the first iterations, one by one    a job that comes waits for the end of the round
//
// Where it departs:
//   - A node group is cut from the order of the list, not by depth in the graph.
//   - A node group is issued as groups of its list, each when the lease's rule allows it, and takes pages that were
//     given back, after the computation. Waterwave's takes what was freed when it was scheduled.
//   - Waterwave has no priorities: a round is an iteration of each job, whatever its weight.
//
// # What opens a barrier
//
// A job that leaves, with all its iterations or because it crashed, is waited for no more. One that does not ask and
// was not heard of for twice as long as a round takes, ten seconds at most, is missed: it stands still, or waits for
// data. The others go on without it, into the next rounds too, until it asks; then it goes on where it is. One that
// asks waits for the lease, which ends any delay when nobody goes on by himself (package lease).
package waterwave
