package planner

import (
	"context"

	"tensile/graph"
	"tensile/plan/program"
	"tensile/scheduler"
)

// Plan is the function of that name, for jobs as they share the device.
func (d Device) Plan(ctx context.Context, r scheduler.Request) (*Planned, error) {
	switch {
	case d.Turns:
		return planInTurns(ctx, r)
	case d.Gates:
		return d.gates(ctx, r)
	}
	return Plan(ctx, r)
}

// planInTurns plans each job of a request as if it were alone, within all of the budget. The jobs share host memory.
func planInTurns(ctx context.Context, r scheduler.Request) (*Planned, error) {
	all := new(Planned)
	one := r
	for i := range r.Jobs {
		one.Jobs = r.Jobs[i : i+1]
		if r.HostBudget > 0 {
			one.HostBudget = max(1, r.HostBudget-all.Host-hostBytes(r.Jobs[i+1:]))
		}
		p, err := Plan(ctx, one)
		if err != nil {
			return nil, err
		}
		all.Jobs, all.Programs = append(all.Jobs, p.Jobs...), append(all.Programs, p.Programs...)
		all.SlotPeak, all.Arena, all.Host = all.SlotPeak+p.SlotPeak, all.Arena+p.Arena, all.Host+p.Host
		all.Least, all.ZeroStall = max(all.Least, p.Least), all.ZeroStall+p.ZeroStall
		all.Rounds, all.Work, all.Again = all.Rounds+p.Rounds, all.Work+p.Work, all.Again || p.Again
		all.Limited = all.Limited || p.Limited
		all.PlanTime, all.PackTime, all.Proof = all.PlanTime+p.PlanTime, all.PackTime+p.PackTime, all.Proof+p.Proof
	}
	return all, nil
}

// hostBytes returns what jobs have on the host whatever their plans.
func hostBytes(jobs []scheduler.Job) (sum graph.Bytes) {
	for i := range jobs {
		_, home := program.HostSlots(jobs[i].Graph)
		sum += home + jobs[i].OnHost
	}
	return sum
}
