package report

import (
	"fmt"
	"io"
	"slices"

	"tensile/graph"
	"tensile/graph/text"
	"tensile/models/passes"
	"tensile/models/task"
	"tensile/plan"
	"tensile/scheduler"
	"tensile/scheduler/explain"
	"tensile/scheduler/planner"
	"tensile/wire"
)

// Plan is what tensile plan prints. Device, Policy, Sharing and Budget are the caller's to set.
type Plan struct {
	Device    string       `json:"device"`
	Policy    string       `json:"policy"`
	Sharing   wire.Sharing `json:"memory_sharing,omitzero"`
	Budget    graph.Bytes  `json:"budget_bytes"`
	PlanTime  float64      `json:"plan_ms"`
	PackTime  float64      `json:"pack_ms"`
	Proof     float64      `json:"prove_ms"`
	Rounds    int          `json:"rounds"`
	Work      int64        `json:"planning_steps"`
	Limited   bool         `json:"planning_limited"` // the search ended at its limit of steps
	Validated bool         `json:"validated"`
	Jobs      []JobPlan    `json:"jobs"`
	Total     PlanFigures  `json:"total"` // where jobs share memory: of what they need together
	*Gates
}

// PlanFigures are the figures of one job's plan, or of all together.
type PlanFigures struct {
	Memory
	Out graph.Bytes `json:"copied_out_bytes"`
	In  graph.Bytes `json:"copied_in_bytes"`
}

type JobPlan struct {
	// Job is the job's name.
	Job string `json:"job"`
	// Model is its network.
	Model string `json:"model"`
	// Ops is how many ops the graph has.
	Ops int `json:"ops"`
	// Tensors is how many tensors the graph has.
	Tensors int `json:"tensors"`
	// Steps is how many steps the plan has.
	Steps int `json:"steps"`
	// Swaps is how many storages it copies back to the device.
	Swaps int `json:"swaps"`
	// Recomputes is how many ops it executes again.
	Recomputes int `json:"recomputes"`
	PlanFigures
	*JobGates
	// Iteration is how long an iteration is predicted to take, in milliseconds. So are Stall and Recompute.
	Iteration float64 `json:"predicted_iteration_ms"`
	// Stall is the part of Iteration for which compute waits for copies.
	Stall float64 `json:"predicted_stall_ms"`
	// EOR is the predicted overhead against an iteration in which nothing is planned.
	EOR float64 `json:"eor"`
	// BoundEOR is the EOR below which no plan gets there. The caller sets it.
	BoundEOR float64 `json:"bound_eor"`
	// Phase is cold-start or updated: where the latencies come from.
	Phase string `json:"phase"`
	// SwapBytes is what swaps copy in an iteration, both ways.
	SwapBytes graph.Bytes `json:"swap_bytes"`
	// Recompute is the part of Iteration that repeated ops take.
	Recompute float64 `json:"recompute_ms"`
	// Priority is the job's; nil: none was given.
	Priority *int `json:"priority,omitempty"`
	// SwapRate is the job's limit; nil: none was given.
	SwapRate *float64 `json:"max_swap_rate,omitempty"`
	// Passes are the rewrites that made the graph.
	Passes []passes.Outcome `json:"passes,omitempty"`
	// Peak is what is on the device at the peak.
	Peak []Holder `json:"peak,omitempty"`
	// Decisions are what was swapped or recomputed, and why.
	Decisions []explain.Decision `json:"decisions,omitempty"`
	// Kept is what stays on the device at the peak, and why.
	Kept []explain.Decision `json:"kept,omitempty"`

	// StepList are the lines of --steps; nil without that.
	StepList []string `json:"step_list,omitempty"`
	// CommandList are the lines of --commands; nil without that.
	CommandList []string `json:"command_list,omitempty"`
	// GroupList are the groups for --commands on a device that backs parts of arenas; else nil.
	GroupList []string `json:"group_list,omitempty"`
}

// countFetches counts the copies to the device but the first of each input.
func countFetches(g *graph.Graph, p *plan.Plan) (n int) {
	arrived := make([]bool, len(g.Storages))
	for _, m := range p.Moves {
		if m.Kind != plan.In {
			continue
		}
		if g.Storages[m.Storage].Role != graph.Input || arrived[m.Storage] {
			n++
		}
		arrived[m.Storage] = true
	}
	return n
}

// Holder is a storage on the device at the peak.
type Holder struct {
	Storage string      `json:"storage"`
	Bytes   graph.Bytes `json:"bytes"`
}

// NewPlan reports on the plans of tasks; saved is what they save. With reasons it has that of each decision.
func NewPlan(tasks []task.Task, p *planner.Planned, saved []Memory, reasons bool) *Plan {
	r := &Plan{Rounds: p.Rounds, Work: p.Work, Limited: p.Limited, Validated: true,
		PlanTime: Milliseconds(p.PlanTime), PackTime: Milliseconds(p.PackTime), Proof: Milliseconds(p.Proof)}
	for i, t := range tasks {
		j := newJobPlan(t, p, i, saved[i], reasons)
		r.Total.add(j.PlanFigures)
		r.Jobs = append(r.Jobs, j)
	}
	r.Total.limit(p.Least)
	r.Total.ZeroStall = p.ZeroStall
	return r
}

// newJobPlan reports on the plan of one job.
func newJobPlan(t task.Task, planned *planner.Planned, i int, saved Memory, reasons bool) JobPlan {
	p := planned.Jobs[i]
	out, in := p.Plan.Copied(t.Graph)
	j := JobPlan{Job: t.Name, Model: t.Model, Ops: len(t.Graph.Ops), Tensors: len(t.Graph.Tensors),
		Steps: len(p.Plan.Steps), PlanFigures: PlanFigures{saved, out, in}, Phase: p.Latencies,
		SwapBytes: p.Plan.Swapped(t.Graph), Recompute: Milliseconds(p.Plan.Recomputation())}
	for _, o := range t.Passes {
		if !reasons {
			o.Refused = nil
		}
		j.Passes = append(j.Passes, o)
	}
	if len(p.Decisions) == 0 { // of policies that decide nothing gap by gap
		j.Swaps, j.Recomputes = countFetches(t.Graph, p.Plan), len(p.Plan.Steps)-len(t.Graph.Ops)
	}
	for _, d := range p.Decisions {
		switch d.Kind {
		case scheduler.Swap:
			j.Swaps++
		case scheduler.Recompute:
			j.Recomputes++
		}
		if reasons && d.Kind == scheduler.Keep {
			j.Kept = append(j.Kept, explain.DecisionOf(t.Graph, p.Plan, d))
		} else if reasons {
			j.Decisions = append(j.Decisions, explain.DecisionOf(t.Graph, p.Plan, d))
		}
	}
	if reasons {
		for _, h := range planned.Holders(t.Graph, i) {
			j.Peak = append(j.Peak, Holder{t.Graph.Storages[h].Name, t.Graph.Storages[h].Bytes})
		}
	}
	timing := planned.Timing(i)
	j.Iteration, j.Stall = Milliseconds(timing.Iteration), Milliseconds(timing.Stall)
	j.EOR = float64(timing.Iteration) / float64(max(1, p.Unplanned))
	return j
}

func (f *PlanFigures) add(g PlanFigures) {
	f.Memory.Add(g.Memory)
	f.Out += g.Out
	f.In += g.In
}

// LimitedWork says that a search for plans ended early.
func LimitedWork(steps int64) string {
	return fmt.Sprintf("planning ended after %d steps, its limit, with the best plans up to then; --planning-work "+
		"gives it more", steps)
}

// WriteTable prints the report for people; wide has all columns. Steps, commands and reasons follow where it has them.
func (r *Plan) WriteTable(out io.Writer, wide bool) error {
	fmt.Fprintf(out, "device %s, policy %s: planned in %.1f ms, packed in %.1f ms (%d rounds), proven in %.1f ms\n",
		r.Device, r.Policy, r.PlanTime, r.PackTime, r.Rounds, r.Proof)
	if r.Limited {
		fmt.Fprintln(out, LimitedWork(r.Work))
	}
	rows := r.narrowRows()
	if wide {
		rows = r.wideRows()
	}
	if err := text.Table(out, rows); err != nil {
		return err
	}
	if r.Gates != nil {
		r.Gates.write(out, len(r.Jobs))
	}
	if r.Sharing == wire.Slices {
		fmt.Fprintf(out, "They take turns: one at a time is on the device, and needs at most %s.\n", r.Total.Arena)
	}
	for _, j := range r.Jobs {
		for _, o := range j.Passes {
			fmt.Fprintf(out, "%s: pass %v\n", j.Job, o)
			for _, place := range o.Refused {
				fmt.Fprintf(out, "%s: pass %s refused %s: %s\n", j.Job, o.Pass, place.Op, place.Reason)
			}
		}
	}
	for _, j := range r.Jobs {
		for _, line := range slices.Concat(j.StepList, j.CommandList, j.GroupList) {
			fmt.Fprintln(out, line)
		}
	}
	for _, j := range r.Jobs {
		for _, d := range slices.Concat(j.Decisions, j.Kept) {
			fmt.Fprintf(out, "%s: %s\n", j.Job, d)
		}
	}
	return nil
}

// sizes prints the amounts of a table.
func (r *Plan) sizes() func(graph.Bytes) string {
	amounts := []graph.Bytes{r.Total.VanillaLive, r.Total.Arena}
	for _, j := range r.Jobs {
		amounts = append(amounts, j.VanillaLive, j.Arena)
	}
	return text.SameUnit(amounts...)
}

func (r *Plan) narrowRows() [][]string {
	rows := [][]string{{"JOB", "NEEDS", "PLAN", "SAVED", "SLOWER BY", "SWAPS, RECOMPUTES"}}
	size := r.sizes()
	row := func(name string, f PlanFigures, rest ...string) {
		rows = append(rows, append([]string{name, size(f.VanillaLive), size(f.Arena), savedShare(f.Memory)}, rest...))
	}
	if r.Gates != nil {
		rows[0] = append(rows[0], "BETWEEN ITERATIONS")
	}
	for _, j := range r.Jobs {
		rest := []string{slowerBy(&j.EOR), fmt.Sprintf("%d, %d", j.Swaps, j.Recomputes)}
		if j.JobGates != nil {
			rest = append(rest, size(j.Base))
		}
		row(j.Job, j.PlanFigures, rest...)
	}
	row("total", r.Total)
	return rows
}

func (r *Plan) wideRows() [][]string {
	head := []string{"JOB", "OPS", "VANILLA ALL", "VANILLA LIVE", "SLOT PEAK", "ARENA", "WORKING SET", "ZERO STALL",
		"MSR ALL", "MSR LIVE", "OUT", "IN", "SWAPS", "RECOMPUTES", "ITERATION MS", "STALL MS", "EOR", "BOUND EOR"}
	if r.Gates != nil {
		head = append(head, "BASE", "EXPECTED EOR")
	}
	if r.Jobs[0].Priority != nil {
		head = append(head, "PRIORITY")
	}
	if r.Jobs[0].SwapRate != nil {
		head = append(head, "MAX SWAP RATE")
	}
	rows := [][]string{head}
	size := r.sizes()
	row := func(name, ops string, f PlanFigures, rest ...string) {
		cells := []string{name, ops}
		for _, b := range []graph.Bytes{f.VanillaAll, f.VanillaLive, f.SlotPeak, f.Arena, f.WorkingSet, f.ZeroStall} {
			cells = append(cells, size(b))
		}
		cells = append(cells, fmt.Sprintf("%.3f", f.MSRAll), fmt.Sprintf("%.3f", f.MSRLive), size(f.Out), size(f.In))
		rows = append(rows, append(cells, rest...))
	}
	for _, j := range r.Jobs {
		rest := []string{fmt.Sprint(j.Swaps), fmt.Sprint(j.Recomputes), fmt.Sprintf("%.1f", j.Iteration),
			fmt.Sprintf("%.1f", j.Stall), fmt.Sprintf("%.3f", j.EOR), fmt.Sprintf("%.3f", j.BoundEOR)}
		if j.JobGates != nil {
			rest = append(rest, size(j.Base), fmt.Sprintf("%.3f", j.ExpectedEOR))
		}
		if j.Priority != nil {
			rest = append(rest, fmt.Sprint(*j.Priority))
		}
		if j.SwapRate != nil {
			rest = append(rest, fmt.Sprint(*j.SwapRate))
		}
		row(j.Job, fmt.Sprint(j.Ops), j.PlanFigures, rest...)
	}
	row("total", "", r.Total)
	return rows
}
