package report

import (
	"cmp"
	"fmt"
	"image/color"
	"io"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"tensile/graph"
)

// drawnEOR is the largest EOR in a drawing of a frontier: beyond it nobody trains.
const drawnEOR = 2

// grey is the colour of what limits plans and is none.
var grey = color.Gray{150}

// Draw writes an SVG of EOR over memory: a stair per policy, a ring where the budget that was asked about has a plan,
// and in grey what no plan can be below: the bound EOR, and the memory that the largest step works on.
func (f *Frontier) Draw(w io.Writer) error {
	p := plot.New()
	p.Title.Text = strings.Join(f.Jobs, ", ") + ": time over that without a plan, against memory"
	p.Title.Padding = vg.Points(8)
	p.X.Label.Text, p.Y.Label.Text = "memory in MiB", "EOR, predicted"
	p.Legend.Top = true
	right := mib(f.VanillaLive)
	for _, point := range f.Points {
		right = max(right, mib(point.Arena))
	}
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = 0, right, 1, 1
	var policies []string
	for _, point := range f.Points {
		p.Y.Max = max(p.Y.Max, min(drawnEOR, 1.05+1.05*(point.EOR-1)))
		if !slices.Contains(policies, point.Policy) {
			policies = append(policies, point.Policy)
		}
	}
	var drawn []plot.Plotter
	for i, policy := range policies {
		line, err := plotter.NewLine(f.stair(policy, right, p.Y.Max))
		if err != nil {
			return fmt.Errorf("draw policy %s: %w", policy, err)
		}
		line.Color, line.Width = plotutil.Color(i), vg.Points(1.5)
		line.Dashes = plotutil.Dashes(i / len(plotutil.DefaultColors))
		drawn = append(drawn, line)
		p.Legend.Add(policy, line)
		for _, point := range f.Within {
			if point.Policy != policy || point.EOR > p.Y.Max {
				continue
			}
			ring, err := plotter.NewScatter(plotter.XYs{{X: mib(point.Arena), Y: point.EOR}})
			if err != nil {
				return fmt.Errorf("draw the plan of policy %s: %w", policy, err)
			}
			ring.Color, ring.Shape, ring.Radius = plotutil.Color(i), draw.RingGlyph{}, vg.Points(5)
			drawn = append(drawn, ring)
		}
	}
	bounds := []struct {
		name   string
		at     plotter.XYs
		dashes []vg.Length
	}{
		{"no plan is below", f.bound(p.Y.Max), []vg.Length{vg.Points(4), vg.Points(3)}},
		{"the largest step", verticalLine(f.WorkingSet, p.Y.Max), []vg.Length{vg.Points(1), vg.Points(3)}},
	}
	if f.Budget > 0 {
		bounds = append(bounds, struct {
			name   string
			at     plotter.XYs
			dashes []vg.Length
		}{"the budget, " + f.Budget.String(), verticalLine(f.Budget, p.Y.Max), nil})
	}
	for _, b := range bounds {
		if len(b.at) < 2 {
			continue
		}
		line, err := plotter.NewLine(b.at)
		if err != nil {
			return fmt.Errorf("draw %s: %w", b.name, err)
		}
		line.Color, line.Dashes = grey, b.dashes
		drawn = append(drawn, line)
		p.Legend.Add(b.name, line)
	}
	p.Add(plotter.NewGrid())
	p.Add(drawn...)
	to, err := p.WriterTo(24*vg.Centimeter, 13*vg.Centimeter, "svg")
	if err != nil {
		return err
	}
	_, err = to.WriteTo(w)
	return err
}

func mib(b graph.Bytes) float64 { return float64(b) / float64(graph.MiB) }

// verticalLine is a line from the bottom to the top at so much memory.
func verticalLine(b graph.Bytes, top float64) plotter.XYs {
	return plotter.XYs{{X: mib(b), Y: 1}, {X: mib(b), Y: top}}
}

// stair is the least EOR that a policy has within each budget, from the most memory to the least.
func (f *Frontier) stair(policy string, right, top float64) (line plotter.XYs) {
	for _, p := range f.Points {
		if p.Policy != policy {
			continue
		}
		x, y := mib(p.Arena), min(p.EOR, top)
		if len(line) == 0 {
			line = append(line, plotter.XY{X: right, Y: y})
		} else {
			line = append(line, plotter.XY{X: line[len(line)-1].X, Y: y})
		}
		line = append(line, plotter.XY{X: x, Y: y})
	}
	return line
}

// bound is the EOR below which no plan of these policies is. Each has its own bound, by its order of ops, which falls
// with more memory: the least of those at the next larger budgets holds for all.
func (f *Frontier) bound(top float64) (line plotter.XYs) {
	points := slices.DeleteFunc(slices.Clone(f.Points), func(p FrontierPoint) bool {
		return p.BoundEOR == nil || math.IsInf(*p.BoundEOR, 0)
	})
	slices.SortStableFunc(points, func(a, b FrontierPoint) int {
		return cmp.Compare(cmp.Or(b.Budget, b.Arena), cmp.Or(a.Budget, a.Arena))
	})
	newest := make(map[string]float64)
	for _, p := range points {
		newest[p.Policy] = 1
	}
	for _, p := range points {
		newest[p.Policy] = *p.BoundEOR
		least := top
		for _, eor := range newest {
			least = min(least, eor)
		}
		line = append(line, plotter.XY{X: mib(cmp.Or(p.Budget, p.Arena)), Y: least})
	}
	return line
}
