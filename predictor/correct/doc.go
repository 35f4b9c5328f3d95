// Package correct follows latencies by reports (TENSILE, IV-E): the exponentially weighted moving average of each op,
// the drift of a job, |s'-s|/s, and the line by which what is predicted of ops that were not reported yet is wrong on a
// device. Its functions are pure.
package correct
