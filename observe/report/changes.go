package report

import (
	"fmt"

	"tensile/graph"
	"tensile/plan"
)

// Change is a storage or an op that two plans treat differently.
type Change struct {
	Storage string `json:"storage,omitempty"`
	Op      string `json:"op,omitempty"`
	Before  string `json:"before"`
	Now     string `json:"now"`
}

// CountSwaps is the number of copies to the device in an iteration, but for those that bring its inputs.
func CountSwaps(g *graph.Graph, p *plan.Plan) int {
	n := 0
	for _, m := range p.Moves {
		if m.Kind == plan.In && g.Storages[m.Storage].Role != graph.Input {
			n++
		}
	}
	return n
}

// Changes lists the storages that two plans of a graph treat differently, and the ops that they execute differently
// often.
func Changes(g *graph.Graph, before, now *plan.Plan) []Change {
	list := []Change{}
	wayBefore, wayNow := Treatments(g, before), Treatments(g, now)
	for _, s := range g.Storages {
		if a, b := wayBefore[s.ID], wayNow[s.ID]; a != b {
			list = append(list, Change{Storage: s.Name, Before: a, Now: b})
		}
	}
	runsBefore, runsNow := executions(g, before), executions(g, now)
	for op := range g.Ops {
		if a, b := runsBefore[op], runsNow[op]; a != b {
			list = append(list, Change{Op: g.Ops[op].Name, Before: executedText(a), Now: executedText(b)})
		}
	}
	return list
}

// Treatments says in words what a plan does with each storage in an iteration.
func Treatments(g *graph.Graph, p *plan.Plan) []string {
	fetched, remade := make([]int, len(g.Storages)), make([]bool, len(g.Storages))
	for _, m := range p.Moves {
		if m.Kind == plan.In {
			fetched[m.Storage]++
		}
	}
	made := make(map[graph.TensorID]bool)
	for _, s := range p.Steps {
		for i, t := range g.Ops[s.Op].Outputs {
			if s.Want.Has(i) {
				at := g.Tensors[t].Storage
				remade[at] = remade[at] || made[t]
				made[t] = true
			}
		}
	}
	words := make([]string, len(g.Storages))
	for _, s := range g.Storages {
		switch n := fetched[s.ID]; {
		case n > 0 && s.Role == graph.Input:
			words[s.ID] = "fetched " + timesText(n)
		case n == 1:
			words[s.ID] = "swapped"
		case n > 1:
			words[s.ID] = "swapped " + timesText(n)
		case remade[s.ID]:
			words[s.ID] = "recomputed"
		default:
			words[s.ID] = "stays on the device"
		}
	}
	return words
}

func timesText(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

func executions(g *graph.Graph, p *plan.Plan) []int {
	n := make([]int, len(g.Ops))
	for _, s := range p.Steps {
		n[s.Op]++
	}
	return n
}

func executedText(n int) string { return "executed " + timesText(n) }
