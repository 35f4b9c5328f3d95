package bench

import (
	"bytes"
	"math"
	"slices"
	"strings"
	"testing"

	"tensile/graph"
	"tensile/graph/cost"
	"tensile/scheduler/planner"
)

// frontier is a report on small networks, with a link as slow as they are small.
func frontier(t *testing.T, o FrontierOptions) *FrontierReport {
	t.Helper()
	r, err := MeasureFrontier(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestMeasureFrontier checks the figures against each other.
func TestMeasureFrontier(t *testing.T) {
	r := frontier(t, FrontierOptions{Models: []string{"lenet", "mlp"}, Policies: []string{"tensile", "none-live"},
		Batches: []int{16, 64}, Optimizers: []string{"adam"}, Devices: []string{"a6000"},
		Links: []cost.BytesPerSecond{0, 5e9}, Passes: []string{"none", "all"}, Step: 0.05})
	if len(r.Table) != 2*2*2*2*2 || len(r.Rows) < len(r.Table) || len(r.Violations) > 0 {
		t.Fatalf("%d lines of %d rows, %d violations", len(r.Table), len(r.Rows), len(r.Violations))
	}
	slower, passed := 0, 0
	for _, row := range r.Rows {
		if row.Arena <= 0 || row.Budget > 0 && row.Arena > row.Budget || row.Arena < row.WorkingSet ||
			row.EOR < row.BoundEOR-1e-6 || row.Passes == "none" && row.EOR != row.EORPlain ||
			math.Abs(row.CBRAll*row.EOR-row.MSRAll) > 1e-9 || row.MSRAll < row.MSRLive {
			t.Errorf("%+v", row)
		}
		if row.EOR > 1.01 {
			slower++
		}
		if row.EOR != row.EORPlain {
			passed++
		}
	}
	if slower == 0 || passed == 0 {
		t.Errorf("%d plans lose time, %d are of graphs that passes made faster or slower", slower, passed)
	}
	for _, line := range r.Table {
		for i, p := range line.Within {
			if p.Limit != frontierLimits[i] || p.EOR > p.Limit || i > 0 && p.Arena > line.Within[i-1].Arena ||
				p.Arena < line.Lowest.Arena {
				t.Errorf("%s, %s: %+v of %+v", line.title(), line.Policy, p, line)
			}
		}
	}
	var text bytes.Buffer
	if err := r.WriteTables(&text); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"lenet b64 5GB/s", "none-live", "best CBR"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("%q is not in\n%s", want, &text)
		}
	}
}

// Violations are budgets out of order, beyond what the link explains, down to the limits of the sweep.
func TestFrontierViolations(t *testing.T) {
	row := func(budget graph.Bytes, eor, bound float64) FrontierRow {
		return FrontierRow{FrontierSetting: FrontierSetting{"lenet", 4, "sgd", "v100", 12e9, "none"}, Policy: "tensile",
			Budget: budget, WorkingSet: 1000, EOR: eor, BoundEOR: bound}
	}
	const link = 10_000 // 100 bytes allow .015
	rows := []FrontierRow{row(0, 1.9, 1), row(2000, 1, 1), row(1900, 1.034, 1), row(1800, 1.070, 1),
		row(1700, 1.069, 1), row(1600, 1.069, 1), row(1500, 1.10, 1), row(1400, 2, 1.5), row(1300, 2, 1.4),
		row(1149, 3, 1.4)}
	none := []planner.Refusal{{Budget: 1100}, {Budget: 1099}}
	type violation struct {
		what           string
		before, budget graph.Bytes
		by             float64
	}
	var got []violation
	for _, v := range violations(rows, none, link) {
		got = append(got, violation{v.What, v.Before, v.Budget, math.Round(v.By*1e6) / 1e6})
	}
	want := []violation{{cliff, 1900, 1800, 0.001}, {faster, 1800, 1700, 0.001}, {refused, 0, 1100, 0}}
	if !slices.Equal(got, want) {
		t.Errorf("violations %v, want %v", got, want)
	}
	command := "tensile plan lenet --batch 4 --optimizer sgd --device sim:v100 --link 12000000000B/s --policy " +
		"tensile --budget 1800"
	if v := violations(rows, none, link)[0]; v.Commands[1] != command || v.title() != "lenet b4 sgd v100 12GB/s" {
		t.Errorf("%s: %s, want %s", v.title(), v.Commands[1], command)
	}
}

// TestSweep sweeps a part of what the benchmark does. The most violations that are known are to become none.
func TestSweep(t *testing.T) {
	if raceEnabled {
		t.Skip("planning is slow under the race detector: run without -race")
	}
	const most = 2
	r := frontier(t, FrontierOptions{Models: []string{"resnet:1,1,1,1", "vgg11"}, Policies: []string{"tensile"},
		Batches: []int{16}, Optimizers: []string{"adam"}, Devices: []string{"a6000"}, Links: []cost.BytesPerSecond{0},
		Passes: []string{"none"}, Step: 0.02, Sweep: true})
	for _, v := range r.Violations {
		t.Logf("%s: %s by %.4f at EOR %.4f: %s", v.title(), v.What, v.By, v.EOR, v.Commands[1])
	}
	if t.Logf("%d plans, %d violations", len(r.Rows), len(r.Violations)); len(r.Violations) > most {
		t.Errorf("%d violations, want at most %d", len(r.Violations), most)
	}
}
