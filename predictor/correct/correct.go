package correct

import (
	"math"
	"time"
)

// A report counts as no more than a multiple of the latency that was known before, and no less than a fraction of
// it: one op that was interrupted must not have everything planned again, while a real change is followed within a few
// reports. What a job's first iteration shows is warm-up as well, so it moves less.
const (
	limit       = 8
	warmUpLimit = 2
)

// longest is what an op is taken to take at most, whatever is reported: a million of them can be added.
const longest = time.Hour

// Latency is what is known of an op's latency after one more report: an average in which the report has the weight
// alpha. first says that the report is of a job's first iteration.
func Latency(known, reported time.Duration, alpha float64, first bool) time.Duration {
	factor := float64(limit)
	if first {
		factor = warmUpLimit
	}
	old, seen := float64(known), float64(reported)
	if old > 0 {
		seen = min(max(seen, old/factor), old*factor)
	}
	return time.Duration(math.Round(min(old+alpha*(seen-old), max(old, float64(longest)))))
}

// Drift is by which part the latencies of a job's ops differ from those that its plan was made with: |s'-s|/s, both
// summed up over ops, so that one that has become slower does not hide another that has become faster.
func Drift(now, planned []time.Duration) float64 {
	var off, sum float64
	for op, s := range planned {
		off += math.Abs(float64(now[op] - s))
		sum += float64(s)
	}
	return off / max(sum, 1)
}
