package report

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"tensile/graph"
	"tensile/internal/text"
	"tensile/planner"
)

// Frontier is memory against time: the plans of policies within many budgets that no other plan of the policy beats in
// both. Device is the caller's to set.
type Frontier struct {
	Device      string          `json:"device"`
	Jobs        []string        `json:"jobs"`
	VanillaAll  graph.Bytes     `json:"vanilla_peak_all_bytes"`  // of all jobs
	VanillaLive graph.Bytes     `json:"vanilla_peak_live_bytes"` // of all jobs
	WorkingSet  graph.Bytes     `json:"working_set_bound_bytes"` // of all jobs
	Points      []FrontierPoint `json:"points"`
}

// FrontierPoint is one plan, or one plan per job. What it saves is by arena.
type FrontierPoint struct {
	Policy   string      `json:"policy"`
	Budget   graph.Bytes `json:"budget_bytes"` // that was asked for; 0: no limit
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
	saved := func(of, arena graph.Bytes) float64 { return float64(of-arena) / float64(max(1, of)) }
	for _, p := range points {
		if f.WorkingSet == 0 {
			for _, j := range p.Jobs {
				f.WorkingSet += j.Bounds.WorkingSet
			}
		}
		q := FrontierPoint{Policy: p.Policy, Budget: p.Budget, Arena: p.Arena, EOR: p.EOR,
			MSRAll: saved(f.VanillaAll, p.Arena), MSRLive: saved(f.VanillaLive, p.Arena)}
		q.CBRAll = q.MSRAll / p.EOR
		if p.BoundEOR > 0 {
			q.BoundEOR = &p.BoundEOR
		}
		f.Points = append(f.Points, q)
	}
	return f
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
	for _, p := range f.Points {
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

// drawnEOR is the largest EOR in a drawing of a frontier: beyond it nobody trains.
const drawnEOR = 2

// Draw writes an SVG of EOR over memory: a stair per policy, and in grey what no plan can be below.
func (f *Frontier) Draw(w io.Writer) {
	d := &drawing{w: w}
	width, height := drawWidth/2, drawHeight
	fmt.Fprintf(w, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" font-family=\"sans-serif\" "+
		"font-size=\"13\">\n<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n", drawLeft+width+190,
		drawTop+height+50)
	var most graph.Bytes
	top := 1.0
	var policies []string
	for _, p := range f.Points {
		most, top = max(most, p.Arena), max(top, p.EOR)
		if !slices.Contains(policies, p.Policy) {
			policies = append(policies, p.Policy)
		}
	}
	top = min(drawnEOR, 1.05+1.05*(top-1))
	x := func(b graph.Bytes) float64 { return drawLeft + width*float64(b)/float64(max(1, most)) }
	y := func(eor float64) float64 { return drawTop + height*(1-(min(eor, top)-1)/(top-1)) }
	d.text(drawLeft, 24, "start", strings.Join(f.Jobs, ", ")+": time over that without a plan, against memory")
	for i := range 5 {
		share := float64(i) / 4
		fmt.Fprintf(w, "<path stroke=\"#00000022\" d=\"M%.1f %.1fH%.1fM%.1f %.1fV%.1f\"/>\n", drawLeft,
			y(1+share*(top-1)), drawLeft+width, drawLeft+share*width, drawTop, drawTop+height)
		d.text(drawLeft-6, y(1+share*(top-1))+4, "end", fmt.Sprintf("%.3f", 1+share*(top-1)))
		d.text(drawLeft+share*width, drawTop+height+18, "middle", graph.Bytes(share*float64(most)).String())
	}
	var bound []FrontierPoint
	for _, p := range f.Points {
		if p.BoundEOR != nil && !math.IsInf(*p.BoundEOR, 0) {
			bound = append(bound, FrontierPoint{Arena: cmp.Or(p.Budget, p.Arena), EOR: *p.BoundEOR})
		}
	}
	slices.SortFunc(bound, func(a, b FrontierPoint) int { return cmp.Compare(b.Arena, a.Arena) })
	if len(bound) > 0 {
		fmt.Fprint(w, "<path fill=\"none\" stroke=\"#999999\" stroke-dasharray=\"4\" d=\"")
		for i, p := range bound {
			fmt.Fprintf(w, "%c%.1f %.1f", "ML"[min(i, 1)], min(x(p.Arena), drawLeft+width), y(p.EOR))
		}
		fmt.Fprint(w, "\"/>\n")
	}
	colours := []string{"#4477aa", "#aa3377", "#228833", "#ccbb44", "#66ccee"}
	for i, policy := range policies {
		colour := colours[i%len(colours)]
		fmt.Fprintf(w, "<path fill=\"none\" stroke=\"%s\" stroke-width=\"2\" d=\"", colour)
		first := true
		for _, p := range f.Points {
			switch {
			case p.Policy != policy:
			case first:
				fmt.Fprintf(w, "M%.1f %.1fH%.1f", drawLeft+width, y(p.EOR), x(p.Arena))
				first = false
			default:
				fmt.Fprintf(w, "V%.1fH%.1f", y(p.EOR), x(p.Arena))
			}
		}
		fmt.Fprintf(w, "\"/>\n<rect x=\"%.1f\" y=\"%.1f\" width=\"14\" height=\"4\" fill=\"%s\"/>\n", drawLeft+width+16,
			drawTop+20*float64(i)+8, colour)
		d.text(drawLeft+width+36, drawTop+20*float64(i)+14, "start", policy)
	}
	fmt.Fprintln(w, "</svg>")
}
