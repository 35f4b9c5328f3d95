// Package zico is the scheduler of Zico (Lim et al., Zico: Efficient GPU Memory Sharing for Concurrent DNN Training,
// USENIX ATC 2021) as a method of a lease: it delays the beginning of an iteration by the least time after which all
// jobs together are expected to stay within the capacity (sections 5.1 to 5.3), and nothing within an iteration.
//
// A job's iteration is a table of steps, each with the pages that the job holds and how long: the paper's regions with
// their lifespans, summed up. A step begins when the lease grants a group. Zico's words and what stands for them:
//
//	regions R_i in allocation order, Time(R_i(a)), Time(R_i(d))    steps, from the grant of a group to when the
//	                                                               next one is asked for: no wait for memory counts
//	active regions of the system, Equation 2                       the sum of the steps of all jobs at a time
//	TimeShift, Equation 1                                          least, in timeshift.go
//	sharable and non-sharable area (6.3)                           what is above a job's Base, and Base
//	CUDA events, limit of kernels in flight (6.1)                  groups, and the executor's limit of two in flight
//
// The paper is for two jobs. For more it proposes pairs of jobs with a budget each; here any number shares one.
package zico
