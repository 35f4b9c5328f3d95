package policies

import (
	"cmp"
	"slices"

	"tensile/graph"
	"tensile/graph/cost"
	"tensile/scheduler"
)

// zeroStall is a lower bound of the sum of the slot peaks of jobs that swap without a stall, recompute nothing, and
// begin an iteration every Unplanned. No job is below its own bound, with the whole link. What a job has less than kept
// at its peak was away there, and is copied in in each iteration: over all jobs that takes no more than the link's
// time. A byte of the job with the longest iteration takes the least of it.
func zeroStall(jobs []scheduler.Scheduled, kept []graph.Bytes, in cost.Link) graph.Bytes {
	order := make([]int, len(jobs))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(jobs[b].Unplanned, jobs[a].Unplanned) })
	var bound graph.Bytes
	free := 1.0 // the share of the link's time that is free
	for _, i := range order {
		away := max(0, kept[i]-jobs[i].Bounds.ZeroStall)
		if whole := float64(in.Rate) / 1e9 * float64(jobs[i].Unplanned); in.Rate > 0 {
			away = min(away, graph.Bytes(free*whole)+1)
			free = max(0, free-float64(away)/max(1, whole))
		}
		bound += max(kept[i]-away, jobs[i].Bounds.ZeroStall)
	}
	return bound
}
