package bench

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"tensile/device"
	"tensile/graph"
	"tensile/program"
	"tensile/scheduler"
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
	{"early updates", "tensile", scheduler.Options{KeepOrder: true}},
	{"early copies out", "tensile", scheduler.Options{LateOut: true}},
	{"a lane each way", "tensile", scheduler.Options{OneChannel: true}},
	{"free swaps", "tensile", scheduler.Options{NoSwap: true}},
	{"stalling swaps", "tensile", scheduler.Options{NoStall: true}},
	{"recomputation", "tensile", scheduler.Options{NoRecompute: true}},
	{"chains", "tensile", scheduler.Options{NoChains: true}},
	{"recomputing and swapping together", "tensile", scheduler.Options{NoHybrid: true}},
	{"relaxing", "tensile", scheduler.Options{NoRelax: true}},
	{"all but the paper's method", "tensile-paper", scheduler.Options{}},
}

// ablate plans a workload of one job as low as it goes and within budgets, each time without one part.
func ablate(ctx context.Context, w Workload, d device.Device) ([]AblationRow, error) {
	plain := NewPlanner(w, d, scheduler.Options{})
	plain.Until(ctx)
	_, live, err := plain.Vanilla()
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
			planner := NewPlanner(w, d, a.options)
			planner.Until(ctx)
			if percent == 0 {
				planner.Lowest()
				row.Budget = "lowest"
			}
			planned, err := planner.Plan(a.policy, live[0]*percent/100)
			if err == nil {
				row.fill(planned, live[0])
			} else if !errors.Is(err, scheduler.ErrNoPlan) {
				return nil, err
			}
			rows = append(rows, row)
		}
	}
	return rows, nil
}

func (row *AblationRow) fill(p *Planned, live graph.Bytes) {
	s := p.Jobs[0]
	row.SlotPeak, row.Arena, row.Bound = s.Footprint.Peak, s.Layout.Arena, s.Bounds.ZeroStall
	row.MSRLive = float64(live-row.SlotPeak) / float64(max(1, live))
	row.EOR = float64(p.Timings[0].Iteration) / float64(max(1, s.Unplanned))
	row.Plan = Milliseconds(p.PlanTime)
	for _, d := range s.Decisions {
		if d.Kind == "swap" {
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
func measurePhases(ctx context.Context, w Workload, d device.Device) ([]PhaseRow, error) {
	truth := NewPlanner(w, d, scheduler.Options{})
	truth.Until(ctx)
	_, live, err := truth.Vanilla()
	if err != nil {
		return nil, err
	}
	var rows []PhaseRow
	for _, percent := range []graph.Bytes{85, 50} {
		for _, wrong := range []float64{0.1, 0.3} {
			predicted := NewPlanner(w, d, scheduler.Options{})
			predicted.Until(ctx)
			predicted.disturb(1, wrong)
			for _, planner := range []*Planner{predicted, truth} {
				if err := context.Cause(ctx); err != nil {
					return nil, err
				}
				planner.request.Jobs[0].Measured = planner == truth
				planned, err := planner.Plan("tensile", live[0]*percent/100)
				if errors.Is(err, scheduler.ErrNoPlan) {
					continue
				} else if err != nil {
					return nil, err
				}
				s := planned.Jobs[0]
				rows = append(rows, PhaseRow{w[0].Model, fmt.Sprintf("%d%%", percent), wrong, s.Phase, s.Footprint.Peak,
					float64(live[0]-s.Footprint.Peak) / float64(max(1, live[0])), truth.takes(planned)})
			}
		}
	}
	return rows, nil
}

// takes returns the EOR of a plan of one job when ops take what this planner says.
func (p *Planner) takes(planned *Planned) float64 {
	s := planned.Jobs[0]
	steps := make([]time.Duration, len(s.Plan.Steps))
	for i, step := range s.Plan.Steps {
		steps[i] = p.request.Jobs[0].Latency[step.Op]
	}
	timing := program.Time(planned.Programs[0].Program(), program.Durations{Steps: steps, Out: s.Out, In: s.In})
	plain, err := p.Plan("none-live", 0)
	if err != nil {
		return math.NaN()
	}
	return float64(timing.Iteration) / float64(max(1, plain.Timings[0].Iteration))
}

// disturb replaces latencies by those of the device times random factors, drawn from a seed, whose logarithms have this
// standard deviation.
func (p *Planner) disturb(seed uint64, deviation float64) {
	for i := range p.request.Jobs {
		rng := rand.New(rand.NewPCG(seed, uint64(i)))
		if p.plain == nil {
			p.plain = make([][]time.Duration, len(p.request.Jobs))
		}
		j := &p.request.Jobs[i]
		if p.plain[i] == nil {
			p.plain[i] = j.Latency
		}
		disturbed := make([]time.Duration, len(j.Latency))
		for op, l := range p.plain[i] {
			disturbed[op] = time.Duration(float64(l) * math.Exp(rng.NormFloat64()*deviation))
		}
		j.Latency = disturbed
	}
}
