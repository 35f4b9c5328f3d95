package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"tensile/executor/agent"
	"tensile/graph"
	"tensile/graph/cost"
	"tensile/observe/report"
	"tensile/peak"
	"tensile/plan"
	"tensile/plan/compile"
	"tensile/plan/program"
	"tensile/scheduler/explain"
	"tensile/scheduler/planner"
	"tensile/wire"
)

// livePlan is what a job that a controller runs trains with.
type livePlan struct {
	Job        string          `json:"job"`
	Model      string          `json:"model"`
	State      wire.JobState   `json:"state"`
	Reason     string          `json:"why,omitempty"`    // Why the job waits or failed.
	Epoch      int64           `json:"epoch"`            // The plan in force.
	Newest     int64           `json:"newest_epoch"`     // The newest plan; not in force while it waits for memory.
	PlanReason string          `json:"reason"`           // Why the newest plan was made.
	Phase      string          `json:"phase"`            // Latencies that it was made for: cold-start or updated.
	Passes     []string        `json:"passes,omitempty"` // Passes that rewrote the graph.
	Steps      int             `json:"steps"`
	Ops        int             `json:"ops"`
	Swaps      int             `json:"swaps"`
	SlotPeak   graph.Bytes     `json:"slot_peak_bytes"`
	Arena      graph.Bytes     `json:"arena_bytes"`
	Since      int64           `json:"since_epoch,omitempty"` // The plan that Changes compare with; 0: there is none.
	Changes    []report.Change `json:"changes"`

	Decisions []explain.Decision `json:"decisions,omitempty"` // Set by --explain.

	plan   *plan.Plan
	graph  *graph.Graph
	layout wire.Layout
	link   wire.Rates // The job's share of the link.
}

// show is what is wanted of a plan beside its figures.
type show struct {
	json, steps, commands, explain bool

	svg string // file for a drawing
}

// showLive prints the plan of a job at a controller.
func showLive(ctx context.Context, conn wire.Bus, job string, s show, out io.Writer) error {
	p, err := readLive(ctx, conn, job)
	if err != nil {
		return err
	}
	if s.explain {
		if err := p.explain(); err != nil {
			return err
		}
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
	fmt.Fprintf(out, "job %s (%s) is %s; plan %d (%s)%s: %s\n", p.Job, p.Model, p.State, p.Epoch, p.Phase, waits,
		p.PlanReason)
	fmt.Fprintf(out, "%d steps for %d ops, %d swaps, slot peak %s, arena %s\n", p.Steps, p.Ops, p.Swaps, p.SlotPeak,
		p.Arena)
	if len(p.Passes) > 0 {
		fmt.Fprintf(out, "the graph is rewritten by passes %s\n", strings.Join(p.Passes, ", "))
	}
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
		fmt.Fprint(out, proven.Text())
	}
	for _, d := range p.Decisions {
		fmt.Fprintf(out, "%s: %s\n", p.Job, d)
	}
	return nil
}

// explain fills in what the planner said when it made the plan.
func (p *livePlan) explain() error {
	r := p.layout.Reasons
	if r == nil {
		return fmt.Errorf("--explain: plan %d of job %s has no reasons: leave out --explain", p.Epoch, p.Job)
	}
	if _, err := p.prove(); err != nil {
		return err
	}
	for _, d := range r.All() {
		if int(d.Storage) >= len(p.graph.Storages) {
			return fmt.Errorf("--explain: what is stored of plan %d of job %s is damaged", p.Epoch, p.Job)
		}
		p.Decisions = append(p.Decisions, explain.DecisionOf(p.graph, p.plan, d))
	}
	return nil
}

// prove returns the program of the plan.
func (p *livePlan) prove() (*program.Program, error) {
	proven, err := agent.Prove(p.graph, p.Job, p.Epoch, &p.layout, 1, compile.Options{})
	if err != nil {
		return nil, fmt.Errorf("plan %d of job %s: %w", p.Epoch, p.Job, err)
	}
	return proven.Program(), nil
}

// draw draws the plan as tensile plan does, with the latencies that it was made for.
func (p *livePlan) draw(ctx context.Context, conn wire.Bus, path string) error {
	compiled, err := p.prove()
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
	durations := program.Durations{Steps: make([]time.Duration, len(p.plan.Steps)), Out: cost.Link{Rate: p.link.Out},
		In: cost.Link{Rate: p.link.In}}
	copy(durations.Steps, p.plan.Made)
	before, err := planner.Before(ctx, p.graph, p.plan)
	if err != nil {
		return err
	}
	var drawing bytes.Buffer
	report.Draw(&drawing, p.Job, before, peak.Of(p.graph, p.plan).Slots, compiled, program.Time(compiled, durations))
	if err := os.WriteFile(path, drawing.Bytes(), 0o666); err != nil {
		return fmt.Errorf("--svg: %w", err)
	}
	return nil
}

// readLive reads the plan that a job trains with. While it reads the controller may grant another and remove what that
// replaces: then it reads again.
func readLive(ctx context.Context, conn wire.Bus, job string) (*livePlan, error) {
	r, err := recordOf(ctx, conn, job)
	if err != nil {
		return nil, err
	}
	for {
		p, failed := readLayouts(ctx, conn, r)
		read := r
		if r, err = recordOf(ctx, conn, job); err != nil {
			return nil, err
		}
		if r.Granted == read.Granted && r.Executor == read.Executor {
			return p, failed
		}
	}
}

// readLayouts reads the plan that a job's record names, and the one before it.
func readLayouts(ctx context.Context, conn wire.Bus, r wire.Record) (*livePlan, error) {
	job := r.Spec.Name
	if r.Granted == 0 || r.State.Over() {
		return nil, fmt.Errorf("%s, and trains with no plan", submitted(r))
	}
	p := &livePlan{Job: job, Model: r.Spec.Model, State: r.State, Reason: r.Reason, Newest: r.Epoch,
		PlanReason: r.PlanReason,
		Phase:      r.Latencies, Changes: []report.Change{}}
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
	p.Passes = layout.Plan.Passes
	p.Swaps, p.SlotPeak = report.CountSwaps(p.graph, layout.Plan), peak.Of(p.graph, layout.Plan).Peak
	for epoch := r.Granted - 1; epoch > 0; epoch-- { // a plan that was never granted was not stored
		before, err := loadLayout(ctx, conn, r, epoch)
		if errors.Is(err, wire.ErrNotFound) {
			continue
		} else if err != nil {
			return nil, err
		}
		p.Since, p.Changes = epoch, report.Changes(p.graph, before.Plan, layout.Plan)
		break
	}
	return p, nil
}

func loadLayout(ctx context.Context, conn wire.Bus, r wire.Record, epoch int64) (wire.Layout, error) {
	data, err := conn.Load(ctx, wire.Bucket(r.Executor), wire.LayoutObject(r.Spec.Name, r.Spec.ID, epoch))
	if err != nil {
		return wire.Layout{}, fmt.Errorf("plan %d of job %s: %w", epoch, r.Spec.Name, err)
	}
	return wire.DecodeAs[wire.Layout](data)
}
