package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"tensile/bench"
	"tensile/graph"
	"tensile/internal/bus"
	"tensile/internal/text"
	"tensile/scheduler"
)

// planReport is what tensile plan prints.
type planReport struct {
	Device    string      `json:"device"`
	Policy    string      `json:"policy"`
	Budget    graph.Bytes `json:"budget_bytes"`
	PlanTime  float64     `json:"plan_ms"`
	PackTime  float64     `json:"pack_ms"`
	Proof     float64     `json:"prove_ms"`
	Rounds    int         `json:"rounds"`
	Work      int64       `json:"planning_steps"`
	Limited   bool        `json:"planning_limited"` // the search ended at its limit of steps
	Validated bool        `json:"validated"`
	Jobs      []jobPlan   `json:"jobs"`
	Total     planFigures `json:"total"`
}

// planFigures are the figures of one job's plan, or of all together.
type planFigures struct {
	bench.Memory
	Out graph.Bytes `json:"copied_out_bytes"`
	In  graph.Bytes `json:"copied_in_bytes"`
}

type jobPlan struct {
	Job        string `json:"job"`
	Model      string `json:"model"`
	Ops        int    `json:"ops"`
	Tensors    int    `json:"tensors"`
	Steps      int    `json:"steps"`
	Swaps      int    `json:"swaps"`
	Recomputes int    `json:"recomputes"`
	planFigures
	Iteration float64     `json:"predicted_iteration_ms"`
	Stall     float64     `json:"predicted_stall_ms"`
	EOR       float64     `json:"eor"`                     // predicted: against an iteration in which nothing is planned
	Phase     string      `json:"phase"`                   // cold-start or updated: where the latencies come from
	SwapBytes graph.Bytes `json:"swap_bytes"`              // that swaps copy in an iteration, both ways
	Recompute float64     `json:"recompute_ms"`            // of an iteration
	Priority  *int        `json:"priority,omitempty"`      // if given
	SwapRate  *float64    `json:"max_swap_rate,omitempty"` // if given
	Peak      []holder    `json:"peak,omitempty"`
	Decisions []decision  `json:"decisions,omitempty"`
	Kept      []decision  `json:"kept,omitempty"` // what is on the device at the peak, and why

	StepList    []string `json:"step_list,omitempty"`    // with --steps: its lines
	CommandList []string `json:"command_list,omitempty"` // with --commands: its lines
}

// holder is a storage on the device at the peak.
type holder struct {
	Storage string      `json:"storage"`
	Bytes   graph.Bytes `json:"bytes"`
}

// decision explains what was decided about one gap.
type decision struct {
	Storage   string      `json:"storage"`
	Bytes     graph.Bytes `json:"bytes"`
	Kind      string      `json:"kind"`
	From      string      `json:"from"` // the op before the gap
	To        string      `json:"to"`   // the op after it
	FreeSlots int         `json:"free_slots"`
	Away      float64     `json:"away_ms"`
	Freed     float64     `json:"freed_byte_ms"` // bytes times the time that they are away
	Cost      float64     `json:"cost_ms"`
	Reason    string      `json:"reason"`
}

func planCommand() *cobra.Command {
	var w workloadFlags
	var p planFlags
	var live clientFlags
	var job, svg string
	var steps, commands bool
	c := &cobra.Command{
		Use:   "plan MODEL... | --job JOB",
		Short: "Print what would be done and why, without running it",
		Long: "Plan networks that train together, prove the plans, and print what would be done. Nothing runs.\n\n" +
			"Without --budget the plan is as low as the policy goes; policy tensile then lets no job lose more than a hundredth of its time.\n\n" + modelHelp,
		Example:           "  tensile plan resnet50 --batch 16 --device sim:a6000 --budget 60% --explain",
		ValidArgsFunction: completeModels,
		Args: func(c *cobra.Command, args []string) error {
			if job == "" {
				return needModels(c, args)
			}
			return noArguments(c, args)
		},
		RunE: func(c *cobra.Command, args []string) error {
			if job != "" {
				if err := onlyLive(c); err != nil {
					return err
				}
				return live.with(func(ctx context.Context, conn *bus.Conn, _ []string, out io.Writer) error {
					return showLive(ctx, conn, job, show{p.json, steps, commands, svg}, out)
				})(c, nil)
			}
			p.lowest = true
			s, err := open(c.Context(), args, &w, &p)
			if err != nil {
				return err
			}
			defer s.device.Close()
			report, err := s.report(p.policy, p.explain)
			if err != nil {
				return err
			}
			if svg != "" {
				if err := s.draw(svg); err != nil {
					return err
				}
			}
			for i, t := range s.workload {
				if steps {
					report.Jobs[i].StepList = strings.Split(strings.TrimSpace(s.planned.Jobs[i].Plan.Text(t.Graph)), "\n")
				}
				if commands {
					report.Jobs[i].CommandList = strings.Split(strings.TrimSpace(s.planned.Programs[i].Program().Text()), "\n")
				}
			}
			if p.json {
				return printJSON(c.OutOrStdout(), report)
			}
			return report.write(c.OutOrStdout(), p.wide)
		},
	}
	w.register(c)
	p.register(c)
	live.register(c)
	c.Flags().StringVar(&job, "job", "", "print the plan that this job of a controller trains with, and what has changed since the one before")
	c.Flags().BoolVar(&p.explain, "explain", false, "say per storage what is done with it and why, what that frees and costs; and why the others stay")
	c.Flags().StringVar(&svg, "svg", "", "draw memory over the steps, before and after, and the lanes below it, into this file (several jobs: FILE-JOB.svg each)")
	c.Flags().BoolVar(&steps, "steps", false, "list the steps of an iteration and the moves between them")
	c.Flags().BoolVar(&commands, "commands", false, "list the commands of the program, with their lanes and waits")
	return c
}

// onlyLive refuses flags of a plan that is made here for one that a controller has made.
func onlyLive(c *cobra.Command) (err error) {
	c.Flags().Visit(func(f *pflag.Flag) {
		switch f.Name {
		case "job", "json", "steps", "commands", "svg", "state", "credentials", "nats":
		case "explain":
			err = errors.New("--explain: the controller keeps its plans without the reasons; tensile plan MODEL --explain gives those of a plan that is made here")
		default:
			err = fmt.Errorf("--%s is for a plan that is made here: leave it out with --job, whose plan the controller has made", f.Name)
		}
	})
	return err
}

func (s *session) report(policy string, explain bool) (*planReport, error) {
	p := s.planned
	saved, err := s.planner.Memory(p)
	if err != nil {
		return nil, err
	}
	r := &planReport{Device: s.device.Name(), Policy: policy, Budget: s.budget, Rounds: p.Rounds, Work: p.Work, Limited: p.Limited, Validated: true,
		PlanTime: bench.Milliseconds(p.PlanTime), PackTime: bench.Milliseconds(p.PackTime), Proof: bench.Milliseconds(p.Proof)}
	for i := range s.workload {
		j := s.job(i, saved[i], explain)
		r.Total.add(j.planFigures)
		r.Jobs = append(r.Jobs, j)
	}
	return r, nil
}

// job reports on the plan of one job.
func (s *session) job(i int, saved bench.Memory, explain bool) jobPlan {
	t, p := s.workload[i], s.planned.Jobs[i]
	out, in := p.Plan.Copied(t.Graph)
	j := jobPlan{Job: t.Name, Model: t.Model, Ops: len(t.Graph.Ops), Tensors: len(t.Graph.Tensors), Steps: len(p.Plan.Steps),
		planFigures: planFigures{saved, out, in}, Phase: p.Phase, SwapBytes: p.Plan.Swapped(t.Graph), Recompute: bench.Milliseconds(p.Plan.Recomputation())}
	for _, d := range p.Decisions {
		switch d.Kind {
		case "swap":
			j.Swaps++
		case "recompute":
			j.Recomputes++
		}
		if explain && d.Kind == "keep" {
			j.Kept = append(j.Kept, explained(t.Graph, p, d))
		} else if explain {
			j.Decisions = append(j.Decisions, explained(t.Graph, p, d))
		}
	}
	if explain {
		for _, h := range s.planned.Holders(t.Graph, i) {
			j.Peak = append(j.Peak, holder{t.Graph.Storages[h].Name, t.Graph.Storages[h].Bytes})
		}
	}
	timing := s.planned.Timings[i]
	j.Iteration, j.Stall = bench.Milliseconds(timing.Iteration), bench.Milliseconds(timing.Stall)
	j.EOR = float64(timing.Iteration) / float64(max(1, p.Unplanned))
	if s.priorities != nil {
		j.Priority = &s.priorities[i]
	}
	if s.swapRates != nil {
		j.SwapRate = &s.swapRates[i]
	}
	return j
}

// draw writes a drawing per job.
func (s *session) draw(path string) error {
	for i, t := range s.workload {
		before, err := s.planner.Footprint(i)
		if err != nil {
			return err
		}
		var drawing bytes.Buffer
		bench.Draw(&drawing, t.Name, before, s.planned, i)
		name := path
		if len(s.workload) > 1 {
			name = fmt.Sprintf("%s-%s.svg", strings.TrimSuffix(path, ".svg"), t.Name)
		}
		if err := os.WriteFile(name, drawing.Bytes(), 0o666); err != nil {
			return fmt.Errorf("--svg: %w", err)
		}
	}
	return nil
}

func (f *planFigures) add(g planFigures) {
	f.Memory.Add(g.Memory)
	f.Out += g.Out
	f.In += g.In
}

func explained(g *graph.Graph, s scheduler.Scheduled, d scheduler.Decision) decision {
	op := func(slot int) string {
		switch n := len(s.Plan.Steps); {
		case slot < 0:
			return "the loader"
		case slot >= n:
			return g.Ops[s.Plan.Steps[slot-n].Op].Name + " of the next iteration"
		default:
			return g.Ops[s.Plan.Steps[slot].Op].Name
		}
	}
	return decision{Storage: g.Storages[d.Storage].Name, Bytes: g.Storages[d.Storage].Bytes, Kind: d.Kind, From: op(d.From), To: op(d.To),
		FreeSlots: d.Freed, Away: bench.Milliseconds(d.Away), Freed: float64(g.Storages[d.Storage].Bytes) * bench.Milliseconds(d.Away),
		Cost: bench.Milliseconds(d.Cost), Reason: d.Reason}
}

// limited says that a search for plans ended early.
func limited(steps int64) string {
	return fmt.Sprintf("planning ended after %d steps, its limit, with the best plans up to then; --planning-work gives it more", steps)
}

// write prints the report for people; wide has all columns.
func (r *planReport) write(out io.Writer, wide bool) error {
	fmt.Fprintf(out, "device %s, policy %s: planned in %.1f ms, packed in %.1f ms (%d rounds), proven in %.1f ms\n",
		r.Device, r.Policy, r.PlanTime, r.PackTime, r.Rounds, r.Proof)
	if r.Limited {
		fmt.Fprintln(out, limited(r.Work))
	}
	rows := r.narrow()
	if wide {
		rows = r.wide()
	}
	if err := text.Table(out, rows); err != nil {
		return err
	}
	for _, j := range r.Jobs {
		for _, line := range slices.Concat(j.StepList, j.CommandList) {
			fmt.Fprintln(out, line)
		}
	}
	for _, j := range r.Jobs {
		for _, d := range j.Decisions {
			fmt.Fprintf(out, "%s: %s %s (%s) from %s to %s: away for %d steps, %.3f ms; costs %.3f ms; %s\n", j.Job, d.Kind, d.Storage, d.Bytes, d.From, d.To, d.FreeSlots, d.Away, d.Cost, d.Reason)
		}
		for _, d := range j.Kept {
			fmt.Fprintf(out, "%s: keep %s (%s) at the peak: %s\n", j.Job, d.Storage, d.Bytes, d.Reason)
		}
	}
	return nil
}

// sizes prints the amounts of a table.
func (r *planReport) sizes() func(graph.Bytes) string {
	amounts := []graph.Bytes{r.Total.VanillaLive, r.Total.Arena}
	for _, j := range r.Jobs {
		amounts = append(amounts, j.VanillaLive, j.Arena)
	}
	return text.SameUnit(amounts...)
}

func (r *planReport) narrow() [][]string {
	rows := [][]string{{"JOB", "NEEDS", "PLAN", "SAVED", "SLOWER BY", "SWAPS, RECOMPUTES"}}
	size := r.sizes()
	row := func(name string, f planFigures, rest ...string) {
		rows = append(rows, append([]string{name, size(f.VanillaLive), size(f.Arena), bench.Saved(f.Memory)}, rest...))
	}
	for _, j := range r.Jobs {
		row(j.Job, j.planFigures, bench.SlowerBy(&j.EOR), fmt.Sprintf("%d, %d", j.Swaps, j.Recomputes))
	}
	row("total", r.Total)
	return rows
}

func (r *planReport) wide() [][]string {
	head := []string{"JOB", "OPS", "VANILLA ALL", "VANILLA LIVE", "SLOT PEAK", "ARENA", "WORKING SET", "ZERO STALL", "MSR ALL", "MSR LIVE", "OUT", "IN",
		"SWAPS", "RECOMPUTES", "ITERATION MS", "STALL MS", "EOR"}
	if r.Jobs[0].Priority != nil {
		head = append(head, "PRIORITY")
	}
	if r.Jobs[0].SwapRate != nil {
		head = append(head, "MAX SWAP RATE")
	}
	rows := [][]string{head}
	size := r.sizes()
	row := func(name, ops string, f planFigures, rest ...string) {
		cells := []string{name, ops}
		for _, b := range []graph.Bytes{f.VanillaAll, f.VanillaLive, f.SlotPeak, f.Arena, f.WorkingSet, f.ZeroStall} {
			cells = append(cells, size(b))
		}
		cells = append(cells, fmt.Sprintf("%.3f", f.MSRAll), fmt.Sprintf("%.3f", f.MSRLive), size(f.Out), size(f.In))
		rows = append(rows, append(cells, rest...))
	}
	for _, j := range r.Jobs {
		rest := []string{fmt.Sprint(j.Swaps), fmt.Sprint(j.Recomputes), fmt.Sprintf("%.1f", j.Iteration), fmt.Sprintf("%.1f", j.Stall), fmt.Sprintf("%.3f", j.EOR)}
		if j.Priority != nil {
			rest = append(rest, fmt.Sprint(*j.Priority))
		}
		if j.SwapRate != nil {
			rest = append(rest, fmt.Sprint(*j.SwapRate))
		}
		row(j.Job, fmt.Sprint(j.Ops), j.planFigures, rest...)
	}
	row("total", "", r.Total)
	return rows
}
