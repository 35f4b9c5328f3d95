package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"tensile/device"
	"tensile/graph"
	"tensile/internal/invariants"
	"tensile/peak"
	"tensile/program"
	"tensile/scheduler"
)

// Planned is a workload with proven plans.
type Planned struct {
	scheduler.Result
	Programs []program.Proven
	Timings  []program.Timing // predicted
	PlanTime time.Duration
	PackTime time.Duration
	Proof    time.Duration // Validate, Compile and Check
}

// Planner makes plans of a workload for a device.
type Planner struct {
	request scheduler.Request
	plain   [][]time.Duration // latencies before they were disturbed
	ctx     context.Context   // ends planning
}

// NewPlanner takes latencies from the device's facts. Planning goes on to its end; Until has it end sooner.
func NewPlanner(w Workload, d device.Device, o scheduler.Options) *Planner {
	facts := d.Facts()
	p := &Planner{ctx: context.Background(), request: scheduler.Request{Out: facts.Out, In: facts.In, Align: d.Align(), Options: o}}
	for _, t := range w {
		j := scheduler.Job{Name: t.Name, Epoch: 1, Graph: t.Graph}
		for op := range t.Graph.Ops {
			j.Latency = append(j.Latency, facts.Roofline(t.Graph.Cost(graph.OpID(op))))
			j.Scratch = append(j.Scratch, d.Variants(t.Graph, graph.OpID(op))[0].Scratch)
		}
		p.request.Jobs = append(p.request.Jobs, j)
	}
	return p
}

// Until has plans that are being made end with the context, and its cause as their error.
func (p *Planner) Until(ctx context.Context) { p.ctx = ctx }

// schedule is scheduler.Schedule until the context ends.
func (p *Planner) schedule(r scheduler.Request) (scheduler.Result, error) {
	result, err := scheduler.Schedule(r, func() bool { return p.ctx.Err() != nil })
	if errors.Is(err, scheduler.ErrStopped) {
		err = context.Cause(p.ctx)
	}
	return result, err
}

// Assume sets the latencies that a job's ops are taken to have in the plans that follow, and by how much they may be off,
// which may be nil.
func (p *Planner) Assume(job int, latency, slack []time.Duration) {
	p.request.Jobs[job].Latency, p.request.Jobs[job].Slack = latency, slack
}

// Prefer sets a job's weight and max swap rate for the plans that follow: scheduler.Job says what they mean.
func (p *Planner) Prefer(job, weight int, maxSwapRate float64) {
	p.request.Jobs[job].Weight, p.request.Jobs[job].MaxSwapRate = weight, maxSwapRate
}

// WorkingSet returns the largest working set of each job.
func (p *Planner) WorkingSet(job int) scheduler.WorkingSet {
	return scheduler.WorkingSetOf(p.request.Jobs[job], p.request.Align)
}

// Vanilla returns the slot peak of each job when nothing is freed, and when all is freed after its last use.
func (p *Planner) Vanilla() (all, live []graph.Bytes, err error) {
	if all, err = p.peaks("none-all"); err == nil {
		live, err = p.peaks("none-live")
	}
	return all, live, err
}

func (p *Planner) peaks(policy string) ([]graph.Bytes, error) {
	r := p.request
	r.Policy, r.Options.Pack = policy, "size" // a quick way to pack: the peaks do not depend on it
	result, err := p.schedule(r)
	if err != nil {
		return nil, err
	}
	var peaks []graph.Bytes
	for _, j := range result.Jobs {
		peaks = append(peaks, j.Footprint.Peak)
	}
	return peaks, nil
}

// Footprint returns what a job has on the device, per step, when all is freed after its last use.
func (p *Planner) Footprint(job int) ([]graph.Bytes, error) {
	r := p.request
	r.Jobs = r.Jobs[job : job+1]
	r.Policy, r.Options.Pack = "none-live", "size"
	result, err := p.schedule(r)
	if err != nil {
		return nil, err
	}
	return result.Jobs[0].Footprint.Slots, nil
}

// Lowest has a policy without a budget plan as low as it goes, not only what costs nothing.
func (p *Planner) Lowest() { p.request.Lowest = true }

// Explain has decisions say why what is on the device at the peak stays there.
func (p *Planner) Explain() { p.request.Explain = true }

// Schedule plans under a policy and a budget (0: none) and leaves the proof to the caller.
func (p *Planner) Schedule(policy string, budget graph.Bytes) (*Planned, error) {
	r := p.request
	r.Policy, r.Budget = policy, budget
	var out Planned
	stages := map[scheduler.Stage]*time.Duration{scheduler.Planning: &out.PlanTime, scheduler.Packing: &out.PackTime}
	var present *time.Duration
	since := time.Now()
	r.Stage = func(s scheduler.Stage) {
		if present != nil {
			*present += time.Since(since)
		}
		present, since = stages[s], time.Now()
	}
	var err error
	if out.Result, err = p.schedule(r); err != nil {
		return nil, err
	}
	*present += time.Since(since)
	return &out, nil
}

// Plan schedules under a policy and a budget (0: none) and proves the result.
func (p *Planner) Plan(policy string, budget graph.Bytes) (*Planned, error) {
	out, err := p.Schedule(policy, budget)
	if err != nil {
		return nil, err
	}
	since := time.Now()
	for i, j := range out.Jobs {
		if err := context.Cause(p.ctx); err != nil {
			return nil, err
		}
		proven, err := Prove(p.request.Jobs[i].Graph, j)
		if err != nil {
			return nil, err
		}
		out.Programs = append(out.Programs, proven)
	}
	out.Proof = time.Since(since)
	for i, proven := range out.Programs {
		out.Timings = append(out.Timings, program.Time(proven.Program(), program.Durations{Steps: out.Jobs[i].Plan.Made,
			Out: out.Jobs[i].Out, In: out.Jobs[i].In}))
	}
	return out, nil
}

// Prove proves a plan.
func Prove(g *graph.Graph, s scheduler.Scheduled) (program.Proven, error) {
	proven, err := program.Prove(g, s.Plan, s.Layout, program.Options{Poison: invariants.Enabled})
	if err != nil {
		return program.Proven{}, fmt.Errorf("plan of job %s: %w", s.Plan.Job, err)
	}
	return proven, nil
}

// Latency returns the sum of a job's op latencies as the planner sees them.
func (p *Planner) Latency(job int) time.Duration {
	var sum time.Duration
	for _, l := range p.request.Jobs[job].Latency {
		sum += l
	}
	return sum
}

// Holders names the largest storages on the device at a job's peak.
func (p *Planned) Holders(g *graph.Graph, job int) []graph.StorageID {
	return peak.Holders(p.Jobs[job].Layout.Stays, p.Jobs[job].Footprint.At)
}
