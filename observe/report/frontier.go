package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"tensile/graph"
	"tensile/graph/text"
	"tensile/scheduler/planner"
)

// Frontier is memory against time: the plans of policies within many budgets that no other plan of the policy beats in
// both. Device is the caller's to set.
type Frontier struct {
	Device      string          `json:"device"`
	Jobs        []string        `json:"jobs"`
	VanillaAll  graph.Bytes     `json:"vanilla_peak_all_bytes"`  // the sum of peaks with nothing freed
	VanillaLive graph.Bytes     `json:"vanilla_peak_live_bytes"` // the sum of peaks in vanilla runs
	WorkingSet  graph.Bytes     `json:"working_set_bound_bytes"` // the sum of working sets
	Points      []FrontierPoint `json:"points"`
	// Budget is one that was asked about, Within what the policies make of it, those that have a plan; 0: none was.
	Budget graph.Bytes     `json:"budget_bytes,omitzero"`
	Within []FrontierPoint `json:"within,omitempty"`
}

// FrontierPoint is one plan, or one plan per job. What it saves is by arena.
type FrontierPoint struct {
	Policy   string      `json:"policy"`
	Budget   graph.Bytes `json:"budget_bytes"` // the budget that was asked for; 0: no limit
	Arena    graph.Bytes `json:"arena_bytes"`
	EOR      float64     `json:"eor"`       // predicted, the largest of the jobs'
	BoundEOR *float64    `json:"bound_eor"` // below which no plan gets within the budget; nil: several jobs share it
	MSRAll   float64     `json:"msr_all"`
	MSRLive  float64     `json:"msr_live"`
	CBRAll   float64     `json:"cbr_all"`
}

// NewFrontier reports on points of jobs with these vanilla peaks.
func NewFrontier(jobs []string, points []planner.Point, vanilla planner.Peaks) *Frontier {
	f := &Frontier{Jobs: jobs, Points: []FrontierPoint{}}
	for i := range vanilla.All {
		f.VanillaAll, f.VanillaLive = f.VanillaAll+vanilla.All[i], f.VanillaLive+vanilla.Live[i]
	}
	for _, p := range points {
		if f.WorkingSet == 0 {
			for _, j := range p.Jobs {
				f.WorkingSet += j.Bounds.WorkingSet
			}
		}
		f.Points = append(f.Points, f.point(p))
	}
	return f
}

// Ask adds what policies make of one budget.
func (f *Frontier) Ask(budget graph.Bytes, points []planner.Point) {
	f.Budget = budget
	for _, p := range points {
		f.Within = append(f.Within, f.point(p))
	}
}

// point is a plan beside the vanilla peaks.
func (f *Frontier) point(p planner.Point) FrontierPoint {
	saved := func(of, arena graph.Bytes) float64 { return float64(of-arena) / float64(max(1, of)) }
	q := FrontierPoint{Policy: p.Policy, Budget: p.Budget, Arena: p.Arena, EOR: p.EOR,
		MSRAll: saved(f.VanillaAll, p.Arena), MSRLive: saved(f.VanillaLive, p.Arena)}
	q.CBRAll = q.MSRAll / p.EOR
	if p.BoundEOR > 0 {
		q.BoundEOR = &p.BoundEOR
	}
	return q
}

// WriteTable prints the report for people.
func (f *Frontier) WriteTable(out io.Writer) error {
	amounts := []graph.Bytes{f.VanillaAll}
	for _, p := range f.Points {
		amounts = append(amounts, p.Arena)
	}
	size := text.SameUnit(amounts...)
	fmt.Fprintf(out, "device %s, %s: %s with all kept, %s with all freed after its last use; the largest step "+
		"works on %s\n", f.Device, strings.Join(f.Jobs, ", "), size(f.VanillaAll), size(f.VanillaLive),
		size(f.WorkingSet))
	rows := [][]string{{"POLICY", "BUDGET", "ARENA", "MSR ALL", "MSR LIVE", "EOR", "BOUND EOR", "CBR ALL"}}
	for _, p := range slices.Concat(f.Points, f.Within) {
		budget, bound := "none", "-"
		if p.Budget > 0 {
			budget = size(p.Budget)
		}
		if p.BoundEOR != nil {
			bound = fmt.Sprintf("%.3f", *p.BoundEOR)
		}
		rows = append(rows, []string{p.Policy, budget, size(p.Arena), fmt.Sprintf("%.3f", p.MSRAll),
			fmt.Sprintf("%.3f", p.MSRLive), fmt.Sprintf("%.3f", p.EOR), bound, fmt.Sprintf("%.3f", p.CBRAll)})
	}
	return text.Table(out, rows)
}
