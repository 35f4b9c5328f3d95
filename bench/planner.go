package bench

import (
	"context"
	"fmt"
	"slices"
	"time"

	"tensile/device"
	"tensile/device/sim"
	"tensile/graph"
	"tensile/graph/cost"
	"tensile/models/task"
	"tensile/observe/report"
	"tensile/plan/compile"
	"tensile/plan/pool"
	"tensile/plan/program"
	"tensile/plan/proof"
	"tensile/scheduler"
	"tensile/scheduler/planner"
	"tensile/scheduler/policies/tensile"
)

// PlannerOptions say what MeasurePlanner plans.
type PlannerOptions struct {
	Scaling  []string // models of growing size, whose swaps are planned
	Batch    int      // of these
	Networks []string // models for the ablation and the phases, with a batch of 16
	Passes   []string // rewrites of all of them, by name
	Device   string   // a known device, simulated
	Times    int      // that each planning is timed, small networks ten times as often; the shortest time counts
	Small    bool     // plan again for four jobs of a small network, not of a thousand ops
}

// PlannerReport is what planning costs and what each part of it brings.
type PlannerReport struct {
	Device   string        `json:"device"`
	Passes   []string      `json:"passes,omitempty"`
	Scaling  []PlanCost    `json:"scaling"`
	Replan   []ReplanCost  `json:"replan"`
	Ablation []AblationRow `json:"ablation"`
	Phases   []PhaseRow    `json:"phases"`
}

// PlanCost is what it takes to plan all swaps of a model that cost no time, and to pack and prove the plan.
type PlanCost struct {
	Model    string      `json:"model"`
	Ops      int         `json:"ops"`
	Swaps    int         `json:"swaps"`
	SlotPeak graph.Bytes `json:"slot_peak_bytes"`
	Arena    graph.Bytes `json:"arena_bytes"`
	Plan     float64     `json:"plan_ms"`
	Pack     float64     `json:"pack_ms"`
	Validate float64     `json:"validate_ms"`
	Compile  float64     `json:"compile_ms"`
	Check    float64     `json:"check_ms"`
	PerOp    float64     `json:"plan_ns_per_op"`
}

// Proven is the sum of what comes after planning.
func (c PlanCost) Proven() float64 { return c.Pack + c.Validate + c.Compile + c.Check }

// MeasurePlanner measures all that the report holds.
func MeasurePlanner(ctx context.Context, o PlannerOptions) (*PlannerReport, error) {
	facts, err := cost.Device(o.Device)
	if err != nil {
		return nil, err
	}
	d := sim.New(facts, sim.Options{})
	defer d.Close()
	r := &PlannerReport{Device: d.Name(), Passes: o.Passes}
	for _, model := range o.Scaling {
		row, err := measureScaling(ctx, model, d, o)
		if err != nil {
			return nil, err
		}
		r.Scaling = append(r.Scaling, row)
	}
	if r.Replan, err = measureReplan(ctx, d, o); err != nil {
		return nil, err
	}
	for _, model := range o.Networks {
		w, err := task.Load([]string{model}, task.Settings{Batch: 16, Passes: o.Passes})
		if err != nil {
			return nil, err
		}
		rows, err := ablate(ctx, w, d)
		if err != nil {
			return nil, err
		}
		r.Ablation = append(r.Ablation, rows...)
		phases, err := measurePhases(ctx, w, d)
		if err != nil {
			return nil, err
		}
		r.Phases = append(r.Phases, phases...)
	}
	return r, nil
}

// measureScaling plans one model several times and keeps the shortest time of each part.
func measureScaling(ctx context.Context, model string, d device.Device, o PlannerOptions) (PlanCost, error) {
	batch := o.Batch
	if !slices.Contains(o.Scaling[1:], model) {
		batch = 16 // the first is the network as it is trained
	}
	w, err := task.Load([]string{model}, task.Settings{Batch: batch, Passes: o.Passes})
	if err != nil {
		return PlanCost{}, err
	}
	g := w[0].Graph
	r, err := request(w, d, scheduler.Options{Own: tensile.Options{NoRecompute: true}, Pack: "size"})
	if err != nil {
		return PlanCost{}, err
	}
	r.Lowest = true
	best := PlanCost{Model: model, Ops: len(g.Ops)}
	times := o.Times
	if best.Ops < 2000 {
		times *= 10 // so short that other work on the machine would show
	}
	for i := range times {
		if err := context.Cause(ctx); err != nil {
			return PlanCost{}, err
		}
		planned, err := planner.Schedule(ctx, r)
		if err != nil {
			return PlanCost{}, err
		}
		s := planned.Jobs[0]
		now := PlanCost{Plan: report.Milliseconds(planned.PlanTime)}
		enough := int64(s.Footprint.Peak + s.Footprint.Peak/128) // as where no budget asks for less
		now.Pack = timed(func() { s.Layout, err = compile.PlaceBy(g, s.Plan, d.Align(), pool.Options{Enough: enough}) })
		if err != nil {
			return PlanCost{}, err
		}
		now.Validate = timed(func() { err = proof.Validate(g, s.Plan) })
		if err != nil {
			return PlanCost{}, err
		}
		var compiled *program.Program
		now.Compile = timed(func() { compiled = compile.Compile(g, s.Plan, s.Layout, compile.Options{}) })
		now.Check = timed(func() { err = proof.Check(compiled) })
		if err != nil {
			return PlanCost{}, err
		}
		best.Swaps, best.SlotPeak, best.Arena = len(s.Decisions), s.Footprint.Peak, s.Layout.Arena
		for _, part := range [][2]*float64{{&best.Plan, &now.Plan}, {&best.Pack, &now.Pack},
			{&best.Validate, &now.Validate},
			{&best.Compile, &now.Compile}, {&best.Check, &now.Check}} {
			if i == 0 || *part[1] < *part[0] {
				*part[0] = *part[1]
			}
		}
	}
	best.PerOp = best.Plan * 1e6 / float64(best.Ops)
	return best, nil
}

func timed(do func()) float64 {
	since := time.Now()
	do()
	return report.Milliseconds(time.Since(since))
}

// ReplanCost is what it takes to plan again for several jobs after their latencies have changed.
type ReplanCost struct {
	Jobs int `json:"jobs"`
	Ops  int `json:"ops_per_job"`
	// of what the jobs need with all freed after its last use; 0: all swaps that cost no time, and nothing else
	Budget float64 `json:"budget_share"`
	Plan   float64 `json:"plan_ms"`
	All    float64 `json:"all_ms"` // with packing, shares of the link and proofs
}

// measureReplan plans for four jobs of about a thousand ops, each time with latencies that differ by a few per cent.
func measureReplan(ctx context.Context, d device.Device, o PlannerOptions) ([]ReplanCost, error) {
	const jobs = 4
	model := "resnet:6,6,6,6"
	if o.Small {
		model = "lenet"
	}
	w, err := task.Load([]string{fmt.Sprintf("%s:%d", model, jobs)}, task.Settings{Batch: 8,
		Passes: o.Passes})
	if err != nil {
		return nil, err
	}
	plain, live, err := requestAndLive(ctx, w, d)
	if err != nil {
		return nil, err
	}
	var rows []ReplanCost
	for _, percent := range []graph.Bytes{0, 90, 60} {
		plain.Options.Own, plain.Lowest = tensile.Options{NoRecompute: percent == 0}, percent == 0
		plain.Budget = live * percent / 100
		row := ReplanCost{Jobs: jobs, Ops: len(w[0].Graph.Ops), Budget: float64(percent) / 100}
		for i := range o.Times {
			if err := context.Cause(ctx); err != nil {
				return nil, err
			}
			again := disturbed(plain, uint64(i), 0.03)
			var planned *planner.Planned
			all := timed(func() { planned, err = planner.Plan(ctx, again) })
			if err != nil {
				return nil, err
			}
			if now := report.Milliseconds(planned.PlanTime); i == 0 || now < row.Plan {
				row.Plan = now
			}
			if i == 0 || all < row.All {
				row.All = all
			}
		}
		rows = append(rows, row)
	}
	return rows, nil
}
