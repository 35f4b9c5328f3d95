// Package jobtest makes requests to the scheduler, for tests: random ones, of jobs with random graphs, latencies,
// scratch, weights and swap rates on a random link; and, for benchmarks, that of a known network.
package jobtest
