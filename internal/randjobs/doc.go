// Package randjobs makes random requests to the scheduler, for tests: jobs with random graphs, latencies, scratch,
// weights and swap rates on a random link.
package randjobs
