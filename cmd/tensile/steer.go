package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"tensile/graph"
	"tensile/scheduler"
	"tensile/wire"
	"tensile/wire/bus"
)

// steering is a command that has the controller change something.
type steering struct {
	client clientFlags
	asJSON bool
}

// steer completes such a command, which asks all requests, one after the other.
func steer(c *cobra.Command, requests func(args []string) ([]wire.Request, error)) *cobra.Command {
	s := new(steering)
	var asked []wire.Request
	c.PreRunE = func(_ *cobra.Command, args []string) (err error) {
		asked, err = requests(args)
		return err
	}
	c.RunE = s.client.withController(func(ctx context.Context, conn *bus.Conn, _ []string, out io.Writer) error {
		return s.ask(ctx, conn, asked, out)
	})
	s.client.register(c)
	c.Flags().BoolVar(&s.asJSON, "json", false, "print a single JSON document")
	return c
}

// ask asks, and prints what became of the jobs, or that it is done where it is about none. The error is of those that
// were refused.
func (s *steering) ask(ctx context.Context, conn wire.Bus, requests []wire.Request, out io.Writer) error {
	changed := []wire.Record{}
	var refused []error
	for _, q := range requests {
		before, err := tenantsBefore(ctx, conn, q)
		if err != nil {
			return err
		}
		a, err := ask(ctx, conn, q)
		if a.Error != "" { // the others are asked all the same
			refused = append(refused, err)
			continue
		} else if err != nil {
			return err
		}
		changed = append(changed, a.Jobs...)
		if s.asJSON {
			continue
		}
		for _, r := range a.Jobs {
			line := submitted(r)
			if q.Verb == wire.SetWeight {
				line = fmt.Sprintf("job %s has priority %d", r.Spec.Name, r.Spec.Priority)
			}
			fmt.Fprintln(out, line)
		}
		switch q.Verb {
		case wire.SetBudget:
			fmt.Fprintln(out, budgetIs(q))
		case wire.Drain:
			switch {
			case q.Undo:
				fmt.Fprintf(out, "device %s takes jobs again\n", q.Device)
			case len(a.Jobs) == 0:
				fmt.Fprintf(out, "device %s has no jobs, and takes none\n", q.Device)
			}
		case wire.SetShare:
			now, err := ask(ctx, conn, wire.Request{Verb: wire.Jobs})
			if err != nil {
				return err
			}
			fmt.Fprint(out, shareIs(q, before, now.Tenants))
		case wire.Forget:
			fmt.Fprintf(out, "executor %s has ended, as you say; its jobs can go on elsewhere\n", q.Executor)
		}
	}
	err := errors.Join(refused...)
	if s.asJSON && (err == nil || len(changed) > 0) {
		err = errors.Join(err, printJSON(out, changed))
	}
	return err
}

func budgetIs(q wire.Request) string {
	line := "the budget"
	if q.Device != "" {
		line += " of " + q.Device
	}
	if q.Budget == 0 {
		return line + " has no limit"
	}
	return line + " is " + q.Budget.String()
}

// requestEach makes the same request for each job.
func requestEach(q wire.Request, jobs []string) []wire.Request {
	var list []wire.Request
	for _, q.Job = range jobs {
		list = append(list, q)
	}
	return list
}

func stopCommand() *cobra.Command {
	return steerEach(wire.Stop, "stop", "Stop jobs after the current iteration")
}

func resumeCommand() *cobra.Command { return steerEach(wire.Resume, "resume", "Resume parked jobs") }

// steerEach makes a command that asks the same of each job.
func steerEach(verb wire.Verb, name, short string) *cobra.Command {
	return steer(&cobra.Command{
		Use:     name + " JOB...",
		Short:   short,
		Args:    needJobs,
		Example: "  tensile job " + name + " vgg16.2",
	}, func(jobs []string) ([]wire.Request, error) {
		return requestEach(wire.Request{Verb: verb}, jobs), nil
	})
}

func parkCommand() *cobra.Command {
	var disk bool
	c := steer(&cobra.Command{
		Use:   "park JOB...",
		Short: "Park jobs: pause them and free their device memory",
		Long: `Park jobs after the current iteration. Their state stays in the host memory of their executor and they
use no device memory; with --disk they are reduced to a checkpoint and release the executor too.
tensile job resume continues them, with results that are bit-identical to those of an uninterrupted run.`,
		Args:    needJobs,
		Example: "  tensile job park vgg16.2 --disk",
	}, func(jobs []string) ([]wire.Request, error) {
		q := wire.Request{Verb: wire.Park, Place: wire.InMemory}
		if disk {
			q.Place = wire.OnDisk
		}
		return requestEach(q, jobs), nil
	})
	c.Flags().BoolVar(&disk, "disk", false, "park to a checkpoint on disk and release the executor")
	return c
}

func priorityCommand() *cobra.Command {
	return steer(&cobra.Command{
		Use:   "priority JOB N",
		Short: "Change the priority of a job",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) != 2 {
				return fmt.Errorf("%s: give a JOB and its priority, not %d words; see %s --help", c.CommandPath(),
					len(args), c.CommandPath())
			}
			return nil
		},
		Example: "  tensile job priority vgg16.2 5",
	}, func(args []string) ([]wire.Request, error) {
		n, err := strconv.Atoi(args[1])
		if err != nil || n < 1 || n > scheduler.MaxWeight {
			return nil, fmt.Errorf("priority %q: give 1 to %d", args[1], scheduler.MaxWeight)
		}
		return []wire.Request{{Verb: wire.SetWeight, Job: args[0], Priority: n}}, nil
	})
}

func budgetCommand() *cobra.Command {
	var device string
	c := steer(&cobra.Command{
		Use:   "budget SIZE",
		Short: "Change the device memory budget while jobs train",
		Long: `Change the device memory budget while jobs train; none lifts the limit. Jobs shrink or grow after the
current iteration. The new budget stays in force across restarts of the controller, until one is started
with --budget. Only administrators may change the budget.`,
		Args:    needOne("SIZE"),
		Example: "  tensile device budget 4GiB",
	}, func(args []string) ([]wire.Request, error) {
		q := wire.Request{Verb: wire.SetBudget, Device: device}
		if args[0] == "none" {
			return []wire.Request{q}, nil
		}
		var err error
		if q.Budget, err = parseBytes("budget", args[0]); err != nil {
			return nil, err
		}
		if q.Budget < graph.KiB {
			return nil, fmt.Errorf("budget %s: %d bytes are enough for no job: give a unit, such as 8GiB", args[0],
				int64(q.Budget))
		}
		return []wire.Request{q}, nil
	})
	c.Flags().StringVar(&device, "device", "", "device identity (default: the controller's own device)")
	return c
}

func forgetCommand() *cobra.Command {
	return steer(&cobra.Command{
		Use:   "forget EXECUTOR",
		Short: "Declare an unreachable executor dead so that its jobs restart elsewhere",
		Long: `Declare the process of an unreachable executor dead. The controller then counts its memory as free and
restarts its jobs elsewhere from their checkpoints. If the process is still alive, it may use that
memory at the same time: make sure that it is not. Only administrators may do this.`,
		Args:    needOne("EXECUTOR"),
		Example: "  tensile device forget lab2",
	}, func(args []string) ([]wire.Request, error) {
		if err := wire.CheckName(args[0]); err != nil {
			return nil, err
		}
		return []wire.Request{{Verb: wire.Forget, Executor: args[0]}}, nil
	})
}
