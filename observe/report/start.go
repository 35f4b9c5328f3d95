package report

import (
	"time"

	"tensile/controller/local"
)

// startupTime is the time from when the first of all jobs left Home to the end of a job's first iteration: what the
// job's user waits for, prologues included. It is not known of a job that has completed none.
func startupTime(r *local.Run, job int) (time.Duration, bool) {
	left := r.Jobs[job].Left
	for _, j := range r.Jobs {
		if j.First > 0 {
			left = min(left, j.Left)
		}
	}
	first := r.Jobs[job].First
	return first - left, first > left
}

// startEOR compares the starts of a job in a planned and a vanilla run.
func startEOR(r, vanilla *local.Run, job int) *float64 {
	planned, ok := startupTime(r, job)
	plain, known := startupTime(vanilla, job)
	if !ok || !known {
		return nil
	}
	eor := float64(planned) / float64(plain)
	return &eor
}

// largerOf returns the larger of two ratios; nil is unknown.
func largerOf(a, b *float64) *float64 {
	if a == nil || b != nil && *b > *a {
		return b
	}
	return a
}

// firstEOR compares the first iterations of a planned and a vanilla run, which both start cold.
func firstEOR(planned, vanilla *local.Watched) *float64 {
	if planned.First <= 0 || vanilla.First <= 0 {
		return nil
	}
	eor := float64(planned.First) / float64(vanilla.First)
	return &eor
}
