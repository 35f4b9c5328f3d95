package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"tensile/graph"
	"tensile/peak"
	"tensile/plan"
	"tensile/wire"
)

// livePlan is what a job that a controller runs trains with.
type livePlan struct {
	Job      string      `json:"job"`
	Model    string      `json:"model"`
	State    wire.Phase  `json:"state"`
	Why      string      `json:"why,omitempty"`
	Epoch    int64       `json:"epoch"`
	Newest   int64       `json:"newest_epoch"` // another, if that waits for bytes that other jobs are giving back
	Reason   string      `json:"reason"`       // of the newest plan
	Phase    string      `json:"phase"`        // and for which latencies: cold-start, updated
	Steps    int         `json:"steps"`
	Ops      int         `json:"ops"`
	Swaps    int         `json:"swaps"`
	SlotPeak graph.Bytes `json:"slot_peak_bytes"`
	Arena    graph.Bytes `json:"arena_bytes"`
	Since    int64       `json:"since_epoch,omitempty"` // what Changes are against
	Changes  []change    `json:"changes"`

	plan  *plan.Plan
	graph *graph.Graph
}

// change is a storage or an op with which one plan does something else than another.
type change struct {
	Storage string `json:"storage,omitempty"`
	Op      string `json:"op,omitempty"`
	Before  string `json:"before"`
	Now     string `json:"now"`
}

// showLive prints the plan of a job at a controller.
func showLive(ctx context.Context, conn wire.Bus, job string, asJSON, steps bool, out io.Writer) error {
	p, err := readLive(ctx, conn, job)
	if err != nil {
		return err
	}
	if asJSON {
		return printJSON(out, p)
	}
	waits := ""
	if p.Newest != p.Epoch {
		waits = fmt.Sprintf("; plan %d waits for bytes of other jobs", p.Newest)
	}
	fmt.Fprintf(out, "job %s (%s) is %s; plan %d (%s)%s: %s\n", p.Job, p.Model, p.State, p.Epoch, p.Phase, waits, p.Reason)
	fmt.Fprintf(out, "%d steps for %d ops, %d swaps, slot peak %s, arena %s\n", p.Steps, p.Ops, p.Swaps, p.SlotPeak, p.Arena)
	if p.Since > 0 {
		fmt.Fprintf(out, "%d changes since plan %d\n", len(p.Changes), p.Since)
	}
	for _, c := range p.Changes {
		fmt.Fprintf(out, "  %s%s: %s -> %s\n", c.Storage, c.Op, c.Before, c.Now)
	}
	if steps {
		fmt.Fprint(out, p.plan.Text(p.graph))
	}
	return nil
}

func readLive(ctx context.Context, conn wire.Bus, job string) (*livePlan, error) {
	r, err := recordOf(ctx, conn, job)
	if err != nil {
		return nil, err
	}
	if r.Granted == 0 || r.Phase.Over() {
		return nil, fmt.Errorf("%s, and trains with no plan", submitted(r))
	}
	p := &livePlan{Job: job, Model: r.Spec.Model, State: r.Phase, Why: r.Why, Newest: r.Epoch, Reason: r.Reason, Phase: r.Latencies, Changes: []change{}}
	text, err := conn.Load(ctx, wire.Graphs, wire.GraphObject(r.Spec.Graph))
	if err != nil {
		return nil, fmt.Errorf("the graph of job %s: %w", job, err)
	}
	if p.graph, err = graph.Read(bytes.NewReader(text)); err != nil {
		return nil, err
	}
	layout, err := loadLayout(ctx, conn, r, r.Granted)
	if err != nil {
		return nil, err
	}
	p.plan = layout.Plan
	p.Epoch, p.Steps, p.Ops, p.Arena = layout.Plan.Epoch, len(layout.Plan.Steps), len(p.graph.Ops), layout.Arena
	p.Swaps, p.SlotPeak = swaps(p.graph, layout.Plan), peak.Of(p.graph, layout.Plan).Peak
	for epoch := r.Granted - 1; epoch > 0; epoch-- { // a plan that was never granted was not stored
		before, err := loadLayout(ctx, conn, r, epoch)
		if errors.Is(err, wire.ErrNotFound) {
			continue
		} else if err != nil {
			return nil, err
		}
		p.Since, p.Changes = epoch, changes(p.graph, before.Plan, layout.Plan)
		break
	}
	return p, nil
}

func loadLayout(ctx context.Context, conn wire.Bus, r wire.Record, epoch int64) (wire.Layout, error) {
	data, err := conn.Load(ctx, wire.Bucket(r.Executor), wire.LayoutObject(r.Spec.Name, epoch))
	if err != nil {
		return wire.Layout{}, fmt.Errorf("plan %d of job %s: %w", epoch, r.Spec.Name, err)
	}
	return wire.DecodeAs[wire.Layout](data)
}

// swaps is the number of copies to the device in an iteration, but for those that bring its inputs.
func swaps(g *graph.Graph, p *plan.Plan) int {
	n := 0
	for _, m := range p.Moves {
		if m.Kind == plan.In && g.Storages[m.Storage].Role != graph.Input {
			n++
		}
	}
	return n
}

// changes are the storages that are copied and the ops that are executed another number of times.
func changes(g *graph.Graph, before, now *plan.Plan) []change {
	list := []change{}
	copiesBefore, copiesNow := copies(g, before), copies(g, now)
	for _, s := range g.Storages {
		if a, b := copiesBefore[s.ID], copiesNow[s.ID]; a != b {
			list = append(list, change{Storage: s.Name, Before: copied(a), Now: copied(b)})
		}
	}
	runsBefore, runsNow := executions(g, before), executions(g, now)
	for op := range g.Ops {
		if a, b := runsBefore[op], runsNow[op]; a != b {
			list = append(list, change{Op: g.Ops[op].Name, Before: executed(a), Now: executed(b)})
		}
	}
	return list
}

func copies(g *graph.Graph, p *plan.Plan) []int {
	n := make([]int, len(g.Storages))
	for _, m := range p.Moves {
		if m.Kind == plan.In {
			n[m.Storage]++
		}
	}
	return n
}

func copied(times int) string {
	switch times {
	case 0:
		return "never fetched"
	case 1:
		return "fetched once"
	}
	return fmt.Sprintf("fetched %d times", times)
}

func executions(g *graph.Graph, p *plan.Plan) []int {
	n := make([]int, len(g.Ops))
	for _, s := range p.Steps {
		n[s.Op]++
	}
	return n
}

func executed(times int) string {
	if times == 1 {
		return "executed once"
	}
	return fmt.Sprintf("executed %d times", times)
}
