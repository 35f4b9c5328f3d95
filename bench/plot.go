package bench

import (
	"cmp"
	"context"
	"fmt"
	"image/color"
	"path/filepath"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"

	"tensile/scheduler/planner"
	"tensile/scheduler/policies"
)

// Draw writes drawings into a folder, each as SVG and as PNG: for each network that was trained alone
// what every policy saves and loses (msr-eor-MODEL), and what a job has on the device over time (memory-MODEL).
func (r *PaperReport) Draw(ctx context.Context, dir string) error {
	byModel := make(map[string][]Row)
	var models []string
	for _, t := range r.Tables.Tables {
		if t.Name != "table-3" && t.Name != "budgets" {
			continue
		}
		for _, row := range t.Rows {
			if byModel[row.Model] == nil {
				models = append(models, row.Model)
			}
			byModel[row.Model] = append(byModel[row.Model], row)
		}
	}
	for _, model := range models {
		if err := save(drawSavings(model, byModel[model]), dir, "msr-eor-"+model); err != nil {
			return err
		}
	}
	if r.stage == nil {
		return nil
	}
	p, err := r.stage.drawMemory(ctx)
	if err != nil {
		return err
	}
	return save(p, dir, "memory-"+r.stage.scene.model())
}

// save writes a drawing in both forms.
func save(p *plot.Plot, dir, name string) error {
	for _, form := range []string{"svg", "png"} {
		if err := p.Save(24*vg.Centimeter, 15*vg.Centimeter, filepath.Join(dir, name+"."+form)); err != nil {
			return err
		}
	}
	return nil
}

// drawSavings draws a line per policy: what it saves and what it takes for that.
func drawSavings(model string, rows []Row) *plot.Plot {
	p := plot.New()
	p.Title.Text, p.Title.Padding = model+": memory against time", vg.Points(8)
	p.X.Label.Text = "MSR against jobs that free nothing (more is better)"
	p.Y.Label.Text = "EOR (less is better)"
	p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, ticks{0.9, 0.95, 1, 1.05, 1.1, 1.2, 1.5, 2, 3, 5, 10, 20}
	p.Legend.Top, p.Legend.Left = true, true
	points := make(map[string]plotter.XYs)
	for _, row := range rows {
		if row.EOR != nil {
			name := policyOf(row.Policy)
			points[name] = append(points[name], plotter.XY{X: *row.MSRAll, Y: *row.EOR})
		}
	}
	drawn := 0
	for _, name := range drawOrder(points) {
		at := points[name]
		slices.SortFunc(at, func(a, b plotter.XY) int { return cmp.Or(cmp.Compare(a.X, b.X), cmp.Compare(a.Y, b.Y)) })
		line, marks, err := plotter.NewLinePoints(at)
		if err != nil {
			panic(fmt.Sprintf("bench: %s: %v", name, err)) // there is a point, and all are numbers
		}
		line.Color, line.Width = plotutil.Color(drawn), vg.Points(1.5)
		line.Dashes = plotutil.Dashes(drawn / len(plotutil.DefaultColors))
		marks.Color, marks.Shape, marks.Radius = plotutil.Color(drawn), plotutil.Shape(drawn), vg.Points(3)
		p.Add(line, marks)
		p.Legend.Add(name, line, marks)
		drawn++
	}
	p.Y.Min, p.Y.Max = 0.98*p.Y.Min, 1.02*p.Y.Max
	return p
}

// policyOf is the policy of a row's name: what stands beside it is an extra line, but for the limits of EOR.
func policyOf(name string) string {
	for _, o := range overheads {
		if name == leastName(o) {
			return "tensile"
		}
	}
	return name
}

// drawOrder are the names of lines in the order of the table of policies, others behind them.
func drawOrder(points map[string]plotter.XYs) []string {
	var names []string
	for name := range points {
		names = append(names, name)
	}
	place := func(name string) int {
		i := slices.Index(policies.Names(), name)
		if i < 0 {
			i = len(policies.Names())
		}
		return i
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(place(a), place(b)), cmp.Compare(a, b)) })
	return names
}

// ticks are the marks of an axis.
type ticks []float64

// Ticks implements plot.Ticker.
func (t ticks) Ticks(low, high float64) []plot.Tick {
	var marks []plot.Tick
	for _, v := range t {
		if v >= low && v <= high {
			marks = append(marks, plot.Tick{Value: v, Label: fmt.Sprint(v)})
		}
	}
	return marks
}

// drawn are the policies whose memory is drawn over time, within what tensile-paper needs.
var drawn = []string{"none-live", paperPolicy, "capuchin", "tensile"}

// drawMemory draws what the first job of a stage has on the device in an iteration, by several policies.
func (s *stage) drawMemory(ctx context.Context) (*plot.Plot, error) {
	r, err := s.request(s.tasks, false)
	if err != nil {
		return nil, err
	}
	p := plot.New()
	p.Title.Text, p.Title.Padding = fmt.Sprintf("%s: memory over an iteration, within %s", s.scene.model(), s.paper),
		vg.Points(8)
	p.X.Label.Text, p.Y.Label.Text = "time in ms", "memory in MiB"
	p.Y.Min = 0
	p.Legend.Top = true
	for i, policy := range drawn {
		r.Policy, r.Budget = policy, 0
		if !stops(policy) {
			r.Budget = s.paper
		}
		planned, err := planner.Plan(ctx, r)
		if err != nil {
			return nil, fmt.Errorf("policy %s: %w", policy, err)
		}
		line, err := plotter.NewLine(footprintOf(planned, 0))
		if err != nil {
			return nil, fmt.Errorf("policy %s: %w", policy, err)
		}
		line.StepStyle, line.Width, line.Color = plotter.PostStep, vg.Points(1.2), plotutil.Color(i)
		if policy == "none-live" {
			line.Color = color.Gray{160}
		}
		p.Add(line)
		p.Legend.Add(policy, line)
	}
	return p, nil
}
