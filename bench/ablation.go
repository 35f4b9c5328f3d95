package bench

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"tensile/device"
	"tensile/graph"
	"tensile/models/task"
	"tensile/observe/report"
	"tensile/plan/program"
	"tensile/scheduler"
	"tensile/scheduler/planner"
	"tensile/scheduler/policies/tensile"
)

// AblationRow is a plan with one part of the planner switched off.
type AblationRow struct {
	Model      string      `json:"model"`
	Budget     string      `json:"budget"` // lowest, or a share of what is needed with all freed after its last use
	Without    string      `json:"without"`
	SlotPeak   graph.Bytes `json:"slot_peak_bytes"` // 0: no plan fits
	Arena      graph.Bytes `json:"arena_bytes"`
	Bound      graph.Bytes `json:"zero_stall_bound_bytes"`
	MSRLive    float64     `json:"msr_live"`
	EOR        float64     `json:"eor"`
	Swaps      int         `json:"swaps"`
	Recomputes int         `json:"recomputes"`
	Plan       float64     `json:"plan_ms"`
}

// ablations are the parts of the planner, and the whole of it and the paper's method beside them.
var ablations = []struct {
	without, policy string
	options         scheduler.Options
}{
	{"nothing", "tensile", scheduler.Options{}},
	{"early updates", "tensile", scheduler.Options{Own: tensile.Options{KeepOrder: true}}},
	{"early copies out", "tensile", scheduler.Options{Own: tensile.Options{LateOut: true}}},
	{"a lane each way", "tensile", scheduler.Options{Own: tensile.Options{OneChannel: true}}},
	{"free swaps", "tensile", scheduler.Options{Own: tensile.Options{NoSwap: true}}},
	{"stalling swaps", "tensile", scheduler.Options{Own: tensile.Options{NoStall: true}}},
	{"recomputation", "tensile", scheduler.Options{Own: tensile.Options{NoRecompute: true}}},
	{"chains", "tensile", scheduler.Options{Own: tensile.Options{NoChains: true}}},
	{"relaxing", "tensile", scheduler.Options{Own: tensile.Options{NoRelax: true}}},
	{"all but the paper's method", "tensile-paper", scheduler.Options{}},
}

// ablate plans a workload of one job as low as it goes and within budgets, each time without one part.
func ablate(ctx context.Context, w []task.Task, d device.Device) ([]AblationRow, error) {
	r, live, err := requestAndLive(ctx, w, d)
	if err != nil {
		return nil, err
	}
	var rows []AblationRow
	for _, percent := range []graph.Bytes{0, 70, 50} {
		for _, a := range ablations {
			if err := context.Cause(ctx); err != nil {
				return nil, err
			}
			row := AblationRow{Model: w[0].Model, Without: a.without, Budget: fmt.Sprintf("%d%%", percent)}
			r.Policy, r.Options = a.policy, a.options
			r.Budget, r.Lowest = live*percent/100, percent == 0
			if r.Lowest {
				row.Budget = "lowest"
			}
			planned, err := planner.Plan(ctx, r)
			if err == nil {
				row.fill(planned, live)
			} else if !errors.Is(err, scheduler.ErrNoPlan) {
				return nil, err
			}
			rows = append(rows, row)
		}
	}
	return rows, nil
}

func (row *AblationRow) fill(p *planner.Planned, live graph.Bytes) {
	s := p.Jobs[0]
	row.SlotPeak, row.Arena, row.Bound = s.Footprint.Peak, s.Layout.Arena, s.Bounds.ZeroStall
	row.MSRLive = float64(live-row.SlotPeak) / float64(max(1, live))
	row.EOR = float64(p.Timing(0).Iteration) / float64(max(1, s.Unplanned))
	row.Plan = report.Milliseconds(p.PlanTime)
	for _, d := range s.Decisions {
		if d.Kind == scheduler.Swap {
			row.Swaps++
		} else {
			row.Recomputes++
		}
	}
}

// PhaseRow tells the phases of a job apart: a plan made for predicted latencies, and one made for those that ops take.
type PhaseRow struct {
	Model    string      `json:"model"`
	Budget   string      `json:"budget"`
	Error    float64     `json:"latency_error"` // standard deviation of the logarithm of predicted over true latencies
	Phase    string      `json:"phase"`
	SlotPeak graph.Bytes `json:"slot_peak_bytes"`
	MSRLive  float64     `json:"msr_live"`
	EOR      float64     `json:"eor"` // with the true latencies
}

// measurePhases plans with wrong latencies and times the plan with the true ones, and plans again with those.
func measurePhases(ctx context.Context, w []task.Task, d device.Device) ([]PhaseRow, error) {
	truth, live, err := requestAndLive(ctx, w, d)
	if err != nil {
		return nil, err
	}
	var rows []PhaseRow
	for _, percent := range []graph.Bytes{85, 50} {
		for _, wrong := range []float64{0.1, 0.3} {
			for i, r := range []scheduler.Request{disturbed(truth, 1, wrong), truth} {
				if err := context.Cause(ctx); err != nil {
					return nil, err
				}
				r.Jobs = slices.Clone(r.Jobs)
				r.Jobs[0].Measured = i == 1
				r.Budget = live * percent / 100
				planned, err := planner.Plan(ctx, r)
				if errors.Is(err, scheduler.ErrNoPlan) {
					continue
				} else if err != nil {
					return nil, err
				}
				s := planned.Jobs[0]
				rows = append(rows, PhaseRow{w[0].Model, fmt.Sprintf("%d%%", percent), wrong, s.Latencies,
					s.Footprint.Peak,
					float64(live-s.Footprint.Peak) / float64(max(1, live)), eorOf(ctx, planned, truth)})
			}
		}
	}
	return rows, nil
}

// eorOf is the EOR of a plan of one job if its ops take as long as a request says.
func eorOf(ctx context.Context, planned *planner.Planned, truth scheduler.Request) float64 {
	s := planned.Jobs[0]
	steps := make([]time.Duration, len(s.Plan.Steps))
	for i, step := range s.Plan.Steps {
		steps[i] = truth.Jobs[0].Latency[step.Op]
	}
	timing := program.Time(planned.Programs[0].Program(), program.Durations{Steps: steps, Out: s.Out, In: s.In})
	truth.Policy, truth.Budget = "none-live", 0
	plain, err := planner.Plan(ctx, truth)
	if err != nil {
		return math.NaN()
	}
	return float64(timing.Iteration) / float64(max(1, plain.Timing(0).Iteration))
}

// disturbed returns a request whose latencies are multiplied by random factors, drawn from a seed. The logarithms of
// the factors have this standard deviation.
func disturbed(r scheduler.Request, seed uint64, deviation float64) scheduler.Request {
	r.Jobs = slices.Clone(r.Jobs)
	for i := range r.Jobs {
		rng := rand.New(rand.NewPCG(seed, uint64(i)))
		plain := r.Jobs[i].Latency
		r.Jobs[i].Latency = make([]time.Duration, len(plain))
		for op, l := range plain {
			r.Jobs[i].Latency[op] = time.Duration(float64(l) * math.Exp(rng.NormFloat64()*deviation))
		}
	}
	return r
}
