package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"tensile/device"
	"tensile/observe/report"
	"tensile/plan/compile"
	"tensile/plan/proof"
	"tensile/scheduler/planner"
	"tensile/scheduler/policies"
	"tensile/wire"
	"tensile/wire/bus"
)

func planCommand() *cobra.Command {
	var w workloadFlags
	var p planFlags
	var live clientFlags
	var job, svg, lines string
	var steps, commands, frontier bool
	c := &cobra.Command{
		Use:   "plan MODEL... | SCRIPT [-- ARGUMENTS] | --job JOB",
		Short: "Plan networks and print the plan without running it",
		Long: "Plan networks that train together, prove the plans and print them. Nothing is trained.\n\nWithout " +
			"--budget the plan uses as little memory as the policy can reach; policy tensile then slows no job down " +
			"by more than 1%.\n\n" + modelHelp + "\n\n" + scriptHelp +
			" It\nruns until two of its iterations have done the same, and is planned by what was recorded.",
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
				return live.withController(func(ctx context.Context, conn *bus.Conn, _ []string, out io.Writer) error {
					return showLive(ctx, conn, job, show{p.json, steps, commands, p.explain, svg}, out)
				})(c, nil)
			}
			script, err := scriptOf(c, args, func(flag string) bool { return !ofNetworks(flag) })
			if err != nil {
				return err
			}
			if script != nil {
				dir, err := os.MkdirTemp("", "tensile-plan-")
				if err != nil {
					return err
				}
				defer os.RemoveAll(dir)
				recorded, err := script.recorded(c.Context(), dir)
				if err != nil {
					return err
				}
				args = []string{recorded}
			}
			if frontier {
				return printFrontier(c, args, &w, &p, svg)
			}
			p.lowest = true
			s, err := open(c.Context(), args, &w, &p)
			if err != nil {
				return err
			}
			defer s.device.Close()
			r, err := s.report(c.Context(), p.policy, p.explain)
			if err != nil {
				return err
			}
			r.Sharing = p.way()
			if svg != "" {
				if err := s.draw(c.Context(), svg); err != nil {
					return err
				}
			}
			if lines != "" {
				if err := s.writeScript(lines); err != nil {
					return err
				}
			}
			for i, t := range s.Tasks {
				if steps {
					r.Jobs[i].StepList = strings.Split(strings.TrimSpace(s.Planned.Jobs[i].Plan.Text(t.Graph)), "\n")
				}
				if commands {
					if err := listCommands(s.device, s.Planned.Programs[i], &r.Jobs[i]); err != nil {
						return err
					}
				}
			}
			if p.json {
				return p.printJSON(c.OutOrStdout(), r)
			}
			return cmp.Or(r.WriteTable(c.OutOrStdout(), p.wide), p.notReal(c.OutOrStdout()))
		},
	}
	w.register(c)
	w.registerReplicas(c)
	p.register(c)
	p.registerSharing(c, gatesInRun)
	live.register(c)
	c.Flags().StringVar(&job, "job", "",
		"print the plan in force of this job of a controller, and what changed since the previous one")
	c.Flags().BoolVar(&p.explain, "explain", false,
		"explain, per storage, what is done and why, what that frees and costs, and why the others stay")
	c.Flags().StringVar(&svg, "svg", "",
		"draw memory per step with and without the plan, and the lanes, to this SVG file (one FILE-JOB.svg per job "+
			"if there are several)")
	c.Flags().StringVar(&lines, "script", "",
		"for one captured graph: write the plan to this file in the form that its script reads (one line of JSON)")
	c.Flags().BoolVar(&frontier, "frontier", false,
		"print memory against time for every policy (or each of --policy A,B) over all budgets; --svg draws the "+
			"curves, --budget adds the plans for one budget")
	memoryIsBudget(c.Flags())
	c.Flags().BoolVar(&steps, "steps", false, "list the steps of an iteration and the moves between them")
	c.Flags().BoolVar(&commands, "commands", false,
		"list the commands of the program with their lanes, waits and groups")
	return c
}

// listCommands adds the commands of a program to a report, and the groups that they are in where a device can back a
// part of an arena.
func listCommands(d device.Device, p proof.Proven, r *report.JobPlan) error {
	r.CommandList = strings.Split(strings.TrimSpace(p.Program().Text()), "\n")
	pager, ok := d.(device.Pager)
	if !ok {
		return nil
	}
	divided, err := compile.ProveGroups(p, pager.Page(), 0)
	if err != nil {
		return err
	}
	r.GroupList = strings.Split(strings.TrimSpace(divided.Groups().Text()), "\n")
	return nil
}

// printFrontier prints, and perhaps draws, what policies make of every budget.
func printFrontier(c *cobra.Command, models []string, w *workloadFlags, p *planFlags, svg string) error {
	for _, flag := range []string{"max-overhead", "explain", "steps", "commands", "wide"} {
		if c.Flags().Changed(flag) {
			return fmt.Errorf("--frontier plans within every budget and prints no plan: leave out --%s", flag)
		}
	}
	if p.sharing.Sharing != wire.NoSharing { // which a flag said
		return errors.New("--frontier: its jobs have arenas of their own: leave out --memory-sharing")
	}
	names := policies.Names()
	if c.Flags().Changed("policy") {
		names = strings.Split(p.policy, ",")
	}
	for _, name := range names {
		if err := policies.Check(name); err != nil {
			return err
		}
	}
	s, err := unplanned(c.Context(), models, w, p)
	if err != nil {
		return err
	}
	defer s.device.Close()
	r, err := s.frontier(c.Context(), names, p)
	if err != nil {
		return err
	}
	if svg != "" {
		var drawing bytes.Buffer
		if err := r.Draw(&drawing); err != nil {
			return fmt.Errorf("--svg: %w", err)
		}
		if err := os.WriteFile(svg, drawing.Bytes(), 0o666); err != nil {
			return fmt.Errorf("--svg: %w", err)
		}
	}
	if p.json {
		return p.printJSON(c.OutOrStdout(), r)
	}
	return cmp.Or(r.WriteTable(c.OutOrStdout()), p.notReal(c.OutOrStdout()))
}

// frontier plans by policies for all budgets.
func (s *session) frontier(ctx context.Context, names []string, p *planFlags) (*report.Frontier, error) {
	peaks, err := s.Peaks(ctx)
	if err != nil {
		return nil, err
	}
	var all, within []planner.Point
	for _, p.policy = range names {
		s.Policy, s.Options = p.policy, p.planning()
		points, one, err := s.Frontier(ctx)
		if err != nil {
			return nil, err
		}
		if all = append(all, points...); one != nil {
			within = append(within, *one)
		}
	}
	var jobs []string
	for _, t := range s.Tasks {
		jobs = append(jobs, t.Name)
	}
	r := report.NewFrontier(jobs, all, peaks)
	r.Device = s.device.Name()
	if s.Budget > 0 {
		r.Ask(s.Budget, within)
	}
	return r, nil
}

// onlyLive refuses flags of a plan that is made here for one that a controller has made.
func onlyLive(c *cobra.Command) (err error) {
	visitGiven(c.Flags(), func(f *pflag.Flag) {
		switch f.Name {
		case "job", "json", "steps", "commands", "explain", "svg", "state", "credentials", "nats":
		default:
			err = fmt.Errorf("--%s is for a plan that is made here: leave it out with --job, whose plan the "+
				"controller has made", f.Name)
		}
	})
	return err
}

// report is what tensile plan prints.
func (s *session) report(ctx context.Context, policy string, explain bool) (*report.Plan, error) {
	saved, err := s.saved(ctx)
	if err != nil {
		return nil, err
	}
	r := report.NewPlan(s.Tasks, s.Planned, saved, explain)
	if s.Planned.Expected != nil {
		r.Share(s.Planned)
	}
	r.Device, r.Policy, r.Budget = s.device.Name(), policy, s.Request.Budget
	for i := range r.Jobs {
		within := s.Planned.Jobs[i].Layout.Arena
		if len(r.Jobs) == 1 && !s.Request.Together {
			within = max(within, s.Request.Budget)
		}
		if r.Jobs[i].BoundEOR, err = s.Planned.BoundEOR(ctx, &s.Request, i, within); err != nil {
			return nil, err
		}
		if s.priorities != nil {
			r.Jobs[i].Priority = &s.priorities[i]
		}
		if s.swapRates != nil {
			r.Jobs[i].SwapRate = &s.swapRates[i]
		}
	}
	return r, nil
}

// draw writes a drawing per job.
func (s *session) draw(ctx context.Context, path string) error {
	for i, t := range s.Tasks {
		before, err := planner.Unplanned(ctx, s.Request, i)
		if err != nil {
			return err
		}
		var drawing bytes.Buffer
		report.Draw(&drawing, t.Name, before, s.Planned.Jobs[i].Footprint.Slots, s.Planned.Programs[i].Program(),
			s.Planned.Timing(i))
		name := path
		if len(s.Tasks) > 1 {
			name = fmt.Sprintf("%s-%s.svg", strings.TrimSuffix(path, ".svg"), t.Name)
		}
		if err := os.WriteFile(name, drawing.Bytes(), 0o666); err != nil {
			return fmt.Errorf("--svg: %w", err)
		}
	}
	return nil
}
