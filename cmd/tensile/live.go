package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"tensile/agent"
	"tensile/bench"
	"tensile/cost"
	"tensile/graph"
	"tensile/peak"
	"tensile/plan"
	"tensile/program"
	"tensile/scheduler"
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

	plan   *plan.Plan
	graph  *graph.Graph
	layout wire.Layout
	link   wire.Rates // that the job has for itself
}

// change is a storage or an op with which one plan does something else than another.
type change struct {
	Storage string `json:"storage,omitempty"`
	Op      string `json:"op,omitempty"`
	Before  string `json:"before"`
	Now     string `json:"now"`
}

// show is what is wanted of a plan beside its figures.
type show struct {
	json, steps, commands bool
	svg                   string // file for a drawing
}

// showLive prints the plan of a job at a controller.
func showLive(ctx context.Context, conn wire.Bus, job string, s show, out io.Writer) error {
	p, err := readLive(ctx, conn, job)
	if err != nil {
		return err
	}
	if s.svg != "" {
		if err := p.draw(ctx, conn, s.svg); err != nil {
			return err
		}
	}
	if s.json {
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
	if s.steps {
		fmt.Fprint(out, p.plan.Text(p.graph))
	}
	if s.commands {
		proven, err := p.prove()
		if err != nil {
			return err
		}
		fmt.Fprint(out, proven.Program().Text())
	}
	return nil
}

// prove returns the program of the plan.
func (p *livePlan) prove() (program.Proven, error) {
	proven, err := agent.Prove(p.graph, p.Job, p.Epoch, &p.layout, 1)
	if err != nil {
		return program.Proven{}, fmt.Errorf("plan %d of job %s: %w", p.Epoch, p.Job, err)
	}
	return proven, nil
}

// draw draws the plan as tensile plan does, with the latencies that it was made for.
func (p *livePlan) draw(ctx context.Context, conn wire.Bus, path string) error {
	proven, err := p.prove()
	if err != nil {
		return err
	}
	if p.link == (wire.Rates{}) { // the job has no share of its own
		a, err := ask(ctx, conn, wire.Request{Verb: wire.Jobs})
		if err != nil {
			return err
		}
		p.link = a.Link
	}
	durations := program.Durations{Steps: make([]time.Duration, len(p.plan.Steps)), Out: cost.Link{Rate: p.link.Out}, In: cost.Link{Rate: p.link.In}}
	copy(durations.Steps, p.plan.Made)
	plain := scheduler.Job{Name: p.Job, Epoch: 1, Graph: p.graph, Latency: make([]time.Duration, len(p.graph.Ops)), Scratch: make([]graph.Bytes, len(p.graph.Ops))}
	for slot, step := range p.plan.Steps {
		plain.Latency[step.Op], plain.Scratch[step.Op] = durations.Steps[slot], step.Scratch
	}
	before, err := scheduler.Schedule(scheduler.Request{Jobs: []scheduler.Job{plain}, Policy: "none-live", Align: 1, Options: scheduler.Options{Pack: "size"}}, func() bool { return ctx.Err() != nil })
	if err != nil {
		return err
	}
	var drawing bytes.Buffer
	planned := bench.Planned{Programs: []program.Proven{proven}, Timings: []program.Timing{program.Time(proven.Program(), durations)}}
	planned.Jobs = []scheduler.Scheduled{{Footprint: peak.Of(p.graph, p.plan)}}
	bench.Draw(&drawing, p.Job, before.Jobs[0].Footprint.Slots, &planned, 0)
	if err := os.WriteFile(path, drawing.Bytes(), 0o666); err != nil {
		return fmt.Errorf("--svg: %w", err)
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
	p.plan, p.layout, p.link = layout.Plan, layout, r.Link
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

// changes are the storages that are treated otherwise and the ops that are executed another number of times.
func changes(g *graph.Graph, before, now *plan.Plan) []change {
	list := []change{}
	wayBefore, wayNow := treatments(g, before), treatments(g, now)
	for _, s := range g.Storages {
		if a, b := wayBefore[s.ID], wayNow[s.ID]; a != b {
			list = append(list, change{Storage: s.Name, Before: a, Now: b})
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

// treatments says in words what a plan does with each storage in an iteration.
func treatments(g *graph.Graph, p *plan.Plan) []string {
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
			words[s.ID] = "fetched " + often(n)
		case n == 1:
			words[s.ID] = "swapped"
		case n > 1:
			words[s.ID] = "swapped " + often(n)
		case remade[s.ID]:
			words[s.ID] = "recomputed"
		default:
			words[s.ID] = "stays on the device"
		}
	}
	return words
}

func often(n int) string {
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

func executed(n int) string { return "executed " + often(n) }
