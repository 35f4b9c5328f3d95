package planner

import (
	"context"

	"tensile/graph"
	"tensile/scheduler"
)

// Peaks are the slot peaks of the jobs of a request, one per job.
type Peaks struct {
	All  []graph.Bytes // when nothing is freed within an iteration
	Live []graph.Bytes // when everything is freed after its last use
}

// Vanilla returns the slot peaks of a request's jobs without a plan. Its policy, budget and way to pack do not matter.
func Vanilla(ctx context.Context, r scheduler.Request) (p Peaks, err error) {
	if p.All, err = slotPeaks(ctx, r, "none-all"); err == nil {
		p.Live, err = slotPeaks(ctx, r, "none-live")
	}
	return p, err
}

// Unplanned returns what a job has on the device, per step, when everything is freed after its last use.
func Unplanned(ctx context.Context, r scheduler.Request, job int) ([]graph.Bytes, error) {
	r.Jobs = r.Jobs[job : job+1]
	p, err := scheduleUnplanned(ctx, r, "none-live")
	if err != nil {
		return nil, err
	}
	return p.Jobs[0].Footprint.Slots, nil
}

func slotPeaks(ctx context.Context, r scheduler.Request, policy string) ([]graph.Bytes, error) {
	p, err := scheduleUnplanned(ctx, r, policy)
	if err != nil {
		return nil, err
	}
	var peaks []graph.Bytes
	for _, j := range p.Jobs {
		peaks = append(peaks, j.Footprint.Peak)
	}
	return peaks, nil
}

// scheduleUnplanned schedules by a policy that moves nothing, and packs by the quickest method: peaks do not depend on
// it.
func scheduleUnplanned(ctx context.Context, r scheduler.Request, policy string) (*Planned, error) {
	r.Policy, r.Budget, r.HostBudget = policy, 0, 0
	r.Options.Pack = "size"
	return Schedule(ctx, r)
}
