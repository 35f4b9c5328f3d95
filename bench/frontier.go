package bench

import (
	"context"
	"fmt"
	"math"
	"time"

	"tensile/device/sim"
	"tensile/graph"
	"tensile/graph/autodiff"
	"tensile/graph/cost"
	"tensile/models/passes"
	"tensile/models/task"
	"tensile/observe/report"
	"tensile/scheduler"
	"tensile/scheduler/planner"
)

// FrontierOptions say what MeasureFrontier plans: every model with every policy in every setting.
type FrontierOptions struct {
	Models     []string
	Policies   []string
	Batches    []int
	Optimizers []string
	Devices    []string              // known ones, simulated
	Links      []cost.BytesPerSecond // each way; 0: the device's own
	Passes     []string              // choices of passes, as passes.Parse reads them
	Step       float64               // between two budgets, as a share of the live peak
	Sweep      bool                  // plan every budget, and look for cliffs
}

// FrontierReport is memory against time.
type FrontierReport struct {
	Rows       []FrontierRow       `json:"rows"`
	Table      []FrontierLine      `json:"table"`
	Sweep      bool                `json:"sweep"`
	Violations []FrontierViolation `json:"violations"`
}

// FrontierSetting is what is planned for.
type FrontierSetting struct {
	Model     string              `json:"model"`
	Batch     int                 `json:"batch"`
	Optimizer string              `json:"optimizer"`
	Device    string              `json:"device"`
	Link      cost.BytesPerSecond `json:"link_bytes_per_second"` // 0: the device's own
	Passes    string              `json:"passes"`                // that the graph has been through
}

// plan is the command that plans within a budget.
func (s *FrontierSetting) plan(policy string, budget graph.Bytes) string {
	link := ""
	if s.Passes != passes.None {
		link = " --passes " + s.Passes
	}
	if s.Link > 0 {
		link += fmt.Sprintf(" --link %.0fB/s", float64(s.Link))
	}
	return fmt.Sprintf("tensile plan %s --batch %d --optimizer %s --device sim:%s%s --policy %s --budget %d", s.Model,
		s.Batch, s.Optimizer, s.Device, link, policy, budget)
}

// FrontierRow is a plan within a budget. What it saves is by arena, against the peaks of the graph without passes.
type FrontierRow struct {
	FrontierSetting
	Budget     graph.Bytes `json:"budget_bytes"` // 0: none
	Policy     string      `json:"policy"`
	Arena      graph.Bytes `json:"arena_bytes"`
	WorkingSet graph.Bytes `json:"working_set_bound_bytes"`
	MSRAll     float64     `json:"msr_all"`
	MSRLive    float64     `json:"msr_live"`
	EOR        float64     `json:"eor"`       // against the graph that is trained, without a plan
	EORPlain   float64     `json:"eor_plain"` // against that graph without passes
	CBRAll     float64     `json:"cbr_all"`   // msr_all over eor
	BoundEOR   float64     `json:"bound_eor"`
	Plan       float64     `json:"plan_ms"` // of processors
	Pack       float64     `json:"pack_ms"` // of processors
}

// FrontierViolation is a pair of neighbouring budgets whose plans are not in order, or a budget without a plan.
type FrontierViolation struct {
	FrontierSetting
	Policy   string      `json:"policy"`
	What     string      `json:"what"` // faster: less memory takes less time; cliff: much more time; refused
	Before   graph.Bytes `json:"before_bytes"`
	Budget   graph.Bytes `json:"budget_bytes"`
	By       float64     `json:"by"`  // EOR too little or too much; 0: refused
	EOR      float64     `json:"eor"` // 0: refused
	Commands [2]string   `json:"commands"`
}

// What a violation is.
const (
	faster  = "faster"
	cliff   = "cliff"
	refused = "refused"
)

// MeasureFrontier plans and proves within budgets that fall by steps.
func MeasureFrontier(ctx context.Context, o FrontierOptions) (*FrontierReport, error) {
	r := &FrontierReport{Sweep: o.Sweep, Rows: []FrontierRow{}, Violations: []FrontierViolation{}}
	for _, device := range o.Devices {
		for _, link := range o.Links {
			for _, optimizer := range o.Optimizers {
				for _, batch := range o.Batches {
					for _, model := range o.Models {
						for _, choice := range o.Passes {
							s := FrontierSetting{model, batch, optimizer, device, link, choice}
							if err := r.measure(ctx, s, o); err != nil {
								return nil, err
							}
						}
					}
				}
			}
		}
	}
	return r, nil
}

// measure adds the rows of a setting.
func (r *FrontierReport) measure(ctx context.Context, s FrontierSetting, o FrontierOptions) error {
	request, err := s.request(s.Passes)
	if err != nil {
		return err
	}
	plain, err := s.plain(ctx)
	if err != nil {
		return err
	}
	live := plain.vanilla.Live[0]
	if s.Passes != passes.None {
		vanilla, err := planner.Vanilla(ctx, request)
		if err != nil {
			return err
		}
		live = vanilla.Live[0]
	}
	for _, policy := range o.Policies {
		request.Policy = policy
		c := planner.Curve{Request: request, Live: live, Step: o.Step, Every: o.Sweep, Clock: processorTime}
		points, none, err := c.Points(ctx)
		if err != nil {
			return fmt.Errorf("%s: %w", s.plan(policy, 0), err)
		}
		from := len(r.Rows)
		for i := range points {
			p := &points[i]
			if err := c.Prove(ctx, p); err != nil {
				return err
			}
			r.Rows = append(r.Rows, s.row(p, plain))
			p.Programs, p.Result.Jobs[0].Plan = nil, nil // a curve has many
		}
		r.Table = append(r.Table, lineOf(r.Rows[from:]))
		if o.Sweep {
			link := min(float64(request.Out.Rate), float64(request.In.Rate)) * points[0].Jobs[0].Unplanned.Seconds()
			r.Violations = append(r.Violations, violations(r.Rows[from:], none, link)...)
		}
	}
	return nil
}

// plainGraph is what the graph without passes needs and takes without a plan.
type plainGraph struct {
	vanilla   planner.Peaks
	iteration time.Duration
}

func (s *FrontierSetting) plain(ctx context.Context) (p plainGraph, err error) {
	r, err := s.request(passes.None)
	if err != nil {
		return p, err
	}
	if p.vanilla, err = planner.Vanilla(ctx, r); err != nil {
		return p, err
	}
	r.Policy = "none-live"
	planned, err := planner.Schedule(ctx, r)
	if err != nil {
		return p, err
	}
	p.iteration = planned.Jobs[0].Unplanned
	return p, nil
}

// request asks for plans of the setting, after these passes.
func (s *FrontierSetting) request(choice string) (scheduler.Request, error) {
	names, err := passes.Parse(choice)
	if err != nil {
		return scheduler.Request{}, err
	}
	optimizer, err := autodiff.ParseOptimizer(s.Optimizer, nil)
	if err != nil {
		return scheduler.Request{}, err
	}
	w, err := task.Load([]string{s.Model}, task.Settings{Batch: s.Batch, Optimizer: optimizer,
		Passes: names})
	if err != nil {
		return scheduler.Request{}, err
	}
	facts, err := cost.Device(s.Device)
	if err != nil {
		return scheduler.Request{}, err
	}
	if s.Link > 0 {
		facts.Out.Rate, facts.In.Rate = s.Link, s.Link
	}
	return request(w, sim.New(facts, sim.Options{}), scheduler.Options{})
}

// row is a point of a curve.
func (s *FrontierSetting) row(p *planner.Point, plain plainGraph) FrontierRow {
	vanilla := plain.vanilla
	saved := func(of graph.Bytes) float64 { return float64(of-p.Arena) / float64(max(1, of)) }
	row := FrontierRow{FrontierSetting: *s, Budget: p.Budget, Policy: p.Policy, Arena: p.Arena,
		WorkingSet: p.Jobs[0].Bounds.WorkingSet, MSRAll: saved(vanilla.All[0]), MSRLive: saved(vanilla.Live[0]),
		EOR: p.EOR, EORPlain: p.EOR * float64(p.Jobs[0].Unplanned) / float64(max(1, plain.iteration)),
		BoundEOR: p.BoundEOR,
		Plan:     report.Milliseconds(p.PlanTime), Pack: report.Milliseconds(p.PackTime)}
	row.CBRAll = row.MSRAll / row.EOR
	return row
}

// The sweep looks at budgets down to the larger of this many working sets and the bound from which on the time that
// plans take at least is this many times vanilla. Every budget of that many working sets has a plan.
const (
	sweptWorkingSets   = 1.15
	sweptBound         = 1.5
	plannedWorkingSets = 1.1
)

// violations lists where less memory takes less time, or jumps: more than a fiftieth of vanilla beside one and a half
// times what it takes to copy what the budgets differ by. link is what one direction carries in a vanilla iteration.
// What is below the limits of the sweep is left out. There is one row at least.
func violations(rows []FrontierRow, none []planner.Refusal, link float64) []FrontierViolation {
	const (
		step     = 0.02
		slope    = 1.5
		rounding = 1e-6
	)
	var all []FrontierViolation
	s, policy, workingSet := rows[0].FrontierSetting, rows[0].Policy, float64(rows[0].WorkingSet)
	for i := 1; i < len(rows); i++ {
		a, b := &rows[i-1], &rows[i]
		if a.Budget == 0 || float64(b.Budget) < sweptWorkingSets*workingSet || b.BoundEOR >= sweptBound {
			continue
		}
		most := a.EOR + step + slope*float64(a.Budget-b.Budget)/link
		v := FrontierViolation{FrontierSetting: s, Policy: policy, Before: a.Budget, Budget: b.Budget, EOR: b.EOR,
			Commands: [2]string{s.plan(policy, a.Budget), s.plan(policy, b.Budget)}}
		switch {
		case b.EOR < a.EOR-rounding:
			v.What, v.By = faster, a.EOR-b.EOR
		case b.EOR > most:
			v.What, v.By = cliff, b.EOR-most
		default:
			continue
		}
		all = append(all, v)
	}
	for _, x := range none {
		if float64(x.Budget) >= plannedWorkingSets*workingSet {
			all = append(all, FrontierViolation{FrontierSetting: s, Policy: policy, What: refused, Budget: x.Budget,
				Commands: [2]string{"", s.plan(policy, x.Budget)}})
		}
	}
	return all
}

// frontierLimits are the EOR that a line of the table has the least memory for.
var frontierLimits = [...]float64{1.005, 1.02, 1.05, 1.10, 1.15}

// FrontierLine is the least arena of a policy's plans that lose no more than a limit.
type FrontierLine struct {
	FrontierSetting
	Policy string          `json:"policy"`
	Within []FrontierPoint `json:"within"` // per limit
	CBRAll float64         `json:"best_cbr_all"`
	Lowest FrontierPoint   `json:"lowest"` // the least arena of all
}

// FrontierPoint is the least arena within a limit of EOR; 0: there is none.
type FrontierPoint struct {
	Limit  float64     `json:"eor_limit"`
	Arena  graph.Bytes `json:"arena_bytes"`
	MSRAll float64     `json:"msr_all"`
	EOR    float64     `json:"eor"`
}

// lineOf sums up the rows of a policy in a setting, one at least.
func lineOf(rows []FrontierRow) FrontierLine {
	line := FrontierLine{FrontierSetting: rows[0].FrontierSetting, Policy: rows[0].Policy}
	least := func(limit float64) (p FrontierPoint) {
		for _, row := range rows {
			if row.EOR <= limit && (p.Arena == 0 || row.Arena < p.Arena) {
				p = FrontierPoint{limit, row.Arena, row.MSRAll, row.EOR}
			}
		}
		p.Limit = limit
		return p
	}
	for _, limit := range frontierLimits {
		line.Within = append(line.Within, least(limit))
	}
	for _, row := range rows {
		line.CBRAll = max(line.CBRAll, row.CBRAll)
	}
	line.Lowest = least(math.MaxFloat64)
	return line
}
