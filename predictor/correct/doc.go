// Package correct follows latencies by reports (TENSILE, IV-E): the exponentially weighted moving average of each op, and
// the drift of a job, |s'-s|/s. Its functions are pure.
package correct
