package planner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"tensile/graph"
	"tensile/graph/invariants"
	"tensile/peak"
	"tensile/plan/compile"
	"tensile/plan/program"
	"tensile/plan/proof"
	"tensile/scheduler"
	"tensile/scheduler/policies"
)

// Planned is what became of a request: a proven plan per job, and how long it took.
type Planned struct {
	scheduler.Result
	Programs []proof.Proven // per job
	PlanTime time.Duration
	PackTime time.Duration
	Proof    time.Duration // to validate, compile and check all plans
	Expected *Together     // of jobs that share memory by gates; nil: it was not asked for
}

// Plan schedules a request and proves the plan of each job. Once ctx is done it returns the cause of that. An expected
// no unwraps to scheduler.ErrNoPlan. A plan that cannot be proven is a bug of the scheduler, and an error here.
func Plan(ctx context.Context, r scheduler.Request) (*Planned, error) {
	p, err := Schedule(ctx, r)
	if err != nil {
		return nil, err
	}
	if err := p.prove(ctx, &r); err != nil {
		return nil, err
	}
	return p, nil
}

// prove proves the plan of each job of a request, equal ones once.
func (p *Planned) prove(ctx context.Context, r *scheduler.Request) error {
	since := time.Now()
	p.Programs = nil
	for i, j := range p.Jobs {
		same := func(o scheduler.Scheduled) bool { return j.SameProgram(&o) }
		if k := slices.IndexFunc(p.Jobs[:i], same); k >= 0 {
			p.Programs = append(p.Programs, p.Programs[k].Rename(j.Plan.Job, j.Plan.Epoch))
			continue
		}
		var proven proof.Proven
		var err error
		if stopped := runUnlessDone(ctx, func(tick func(int)) {
			proven, err = prove(r.Jobs[i].Graph, j,
				tick)
		}); stopped {
			return context.Cause(ctx)
		}
		if err != nil {
			return err
		}
		p.Programs = append(p.Programs, proven)
	}
	p.Proof = time.Since(since)
	return nil
}

// prove proves a plan.
func prove(g *graph.Graph, s scheduler.Scheduled, tick func(int)) (proof.Proven, error) {
	proven, err := compile.Prove(g, s.Plan, s.Layout, compile.Options{Poison: invariants.Enabled, Tick: tick})
	if err != nil {
		return proof.Proven{}, fmt.Errorf("the plan of job %s is wrong, please report this: %w", s.Plan.Job, err)
	}
	return proven, nil
}

// Schedule is Plan without the proof: there are no programs.
func Schedule(ctx context.Context, r scheduler.Request) (*Planned, error) {
	return schedule(ctx, r, realClock())
}

// schedule is Schedule with times by a clock.
func schedule(ctx context.Context, r scheduler.Request, clock Clock) (*Planned, error) {
	var p Planned
	times := map[scheduler.Stage]*time.Duration{scheduler.Planning: &p.PlanTime, scheduler.Packing: &p.PackTime}
	stage, since := new(time.Duration), clock()
	next := func(to *time.Duration) {
		now := clock()
		*stage += now - since
		stage, since = to, now
	}
	var err error
	p.Result, err = policies.All().Schedule(r, scheduler.Watch{
		Stop:  func(int64) bool { return ctx.Err() != nil },
		Stage: func(s scheduler.Stage) { next(times[s]) },
	})
	next(new(time.Duration))
	if errors.Is(err, scheduler.ErrStopped) {
		err = context.Cause(ctx)
	}
	if err != nil {
		return nil, err
	}
	return &p, nil
}

// Timing is what an iteration of a job takes by the latencies that its plan was made with.
func (p *Planned) Timing(job int) program.Timing {
	j := &p.Jobs[job]
	return program.Time(p.Programs[job].Program(), program.Durations{Steps: j.Plan.Made, Out: j.Out, In: j.In})
}

// Holders are the largest storages on the device at a job's peak.
func (p *Planned) Holders(g *graph.Graph, job int) []graph.StorageID {
	return peak.Holders(p.Jobs[job].Layout.Stays, p.Jobs[job].Footprint.At)
}
