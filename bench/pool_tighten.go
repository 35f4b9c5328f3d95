package bench

import (
	"errors"
	"fmt"

	"tensile/graph"
	"tensile/observe/report"
	"tensile/scheduler"
	"tensile/scheduler/planner"
)

// Tightening is how often the planner packs until its plan fits a budget: a layout with gaps makes it plan again, for a
// lower peak.
type Tightening struct {
	Instance string             `json:"instance"`
	Budget   graph.Bytes        `json:"budget_bytes"`
	Methods  []MethodTightening `json:"methods"`
}

// MethodTightening is what comes of one method of packing.
type MethodTightening struct {
	Method string `json:"method"`
	Rounds int    `json:"rounds"` // of packing; 0: no plan fits
	// of the plan: the more of the budget it may use, the less it moves
	Peak graph.Bytes `json:"slot_peak_bytes"`
	Need graph.Bytes `json:"need_bytes,omitempty"` // where no plan fits
	Time float64     `json:"ms"`                   // of planning and packing; 0 where no plan fits
}

// tightenMethods are the ways to pack that are compared, and tightenBudgets the budgets, in percent of the slot peak
// under none-live.
var (
	tightenMethods = []string{"search", "promote", "greedy", "smartpool", "first-fit"}
	tightenBudgets = []int{80, 70, 60, 50, 40, 30}
)

// tighten plans a model for each budget with each way to pack.
func (m *packer) tighten(model string) ([]Tightening, error) {
	n, err := openNetwork(m.ctx, model)
	if err != nil {
		return nil, err
	}
	defer n.device.Close()
	var rows []Tightening
	for _, percent := range tightenBudgets {
		row := Tightening{Instance: fmt.Sprintf("%s %d%%", model, percent), Budget: n.live * graph.Bytes(percent) / 100}
		for _, method := range tightenMethods {
			t := MethodTightening{Method: method}
			n.request.Budget, n.request.Options.Pack = row.Budget, method
			planned, err := planner.Plan(m.ctx, n.request)
			if over, ok := errors.AsType[*scheduler.OverBudgetError](err); ok {
				t.Need = over.Need
			} else if err != nil {
				return nil, err
			} else {
				t.Rounds, t.Peak, t.Time = planned.Rounds, planned.SlotPeak,
					report.Milliseconds(planned.PlanTime+planned.PackTime)
			}
			row.Methods = append(row.Methods, t)
		}
		rows = append(rows, row)
	}
	return rows, nil
}
