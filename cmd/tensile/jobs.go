package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"tensile/graph/text"
	"tensile/observe/report"
	"tensile/wire"
	"tensile/wire/bus"
)

func jobsCommand() *cobra.Command {
	var f clientFlags
	var l listing
	c := &cobra.Command{
		Use:   "jobs",
		Short: "List the jobs of a controller",
		Long: `List the jobs of a controller. IT/S is iterations per second of device time, which is virtual with
--device sim; LEFT is the remaining time at that rate; ARENA is the device memory of the plan in force;
AGE is the time since submission; OWNER, shown if there are several, is the user who submitted the job,
or - for an administrator.

With --wide, SLOT PEAK is the peak of the plan in force, PLANS is the number of plans so far,
CHECKPOINT is the iteration of the newest checkpoint, and SLOWDOWN is the measured time per iteration
relative to that of its ops alone and without a plan (always shown if there are tenants). If jobs share
memory, BASE is what a job holds between iterations, GATE is the time per iteration spent waiting for
the memory of others, and SPEED is the expected speed relative to running alone and without a plan.`,
		Args: noArguments,
	}
	c.RunE = f.withController(func(ctx context.Context, conn *bus.Conn, _ []string, out io.Writer) error {
		return listJobs(ctx, conn, l, out)
	})
	f.register(c)
	c.Flags().BoolVar(&l.json, "json", false, "print a single JSON document; with --watch, one per second")
	c.Flags().BoolVar(&l.watch, "watch", false, "refresh every second until interrupted")
	c.Flags().BoolVar(&l.mine, "mine", false, "show only your own jobs")
	c.Flags().BoolVar(&l.wide, "wide", false, "print all columns")
	return c
}

// listing is how jobs are listed.
type listing struct{ json, watch, wide, mine bool }

// listJobs prints the jobs of a controller, once or until it is interrupted.
func listJobs(ctx context.Context, conn *bus.Conn, l listing, out io.Writer) error {
	whole := make(map[string]*wire.Result) // results that were loaded
	for first := true; ; first = false {
		a, err := ask(ctx, conn, wire.Request{Verb: wire.Jobs})
		if l.watch && ctx.Err() != nil {
			return errQuiet
		} else if err != nil {
			return err
		}
		head := report.BudgetLine(a)
		if l.mine {
			me, _, _ := bus.UserName(conn.User())
			a.Jobs = slices.DeleteFunc(a.Jobs, func(r wire.Record) bool { return r.Spec.Owner != me })
		}
		if l.json {
			if a.Jobs == nil {
				a.Jobs = []wire.Record{}
			}
			if err := loadResults(ctx, conn, a.Jobs, whole); err != nil {
				return err
			}
			err = printJSON(out, a.Jobs)
		} else {
			switch {
			case l.watch && isTerminal(out):
				fmt.Fprint(out, "\x1b[H\x1b[J")
			case !first:
				fmt.Fprintln(out)
			}
			err = writeJobs(out, head, a, l.wide, time.Now())
		}
		if err != nil || !l.watch {
			return err
		}
		select {
		case <-ctx.Done():
			return errQuiet
		case <-time.After(time.Second):
		}
	}
}

// loadResults completes the results of jobs with their losses and weights. Those that were loaded before are taken from
// whole.
func loadResults(ctx context.Context, conn *bus.Conn, jobs []wire.Record, whole map[string]*wire.Result) error {
	for i := range jobs {
		r := jobs[i].Result
		if r == nil || r.Stored == "" {
			continue
		}
		name := r.Stored
		if whole[name] == nil {
			all, err := loadResult(ctx, conn, r)
			if err != nil {
				return err
			}
			whole[name] = all
		}
		jobs[i].Result = whole[name]
	}
	return nil
}

// loadResult returns a result with its losses and weights, as far as they are there.
func loadResult(ctx context.Context, conn *bus.Conn, r *wire.Result) (*wire.Result, error) {
	if r.Stored == "" {
		return r, nil
	}
	data, err := conn.Load(ctx, wire.Results, r.Stored)
	if errors.Is(err, wire.ErrNotFound) {
		return r, nil
	} else if err != nil {
		return nil, err
	}
	all, err := wire.DecodeAs[wire.Result](data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", r.Stored, err)
	}
	return &all, nil
}

// writeJobs prints a line about the device, and one for each job.
func writeJobs(out io.Writer, head string, a wire.Answer, wide bool, now time.Time) error {
	if a.Trouble != "" {
		fmt.Fprintln(out, a.Trouble)
	}
	fmt.Fprintln(out, head)
	var table bytes.Buffer
	w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	heads, more := "JOB\tSTATE\tITERATION\tIT/S\tLEFT\tLOSS\tARENA\tPRIORITY\tAGE\t", ""
	if wide {
		more = "SLOT PEAK\tHOST\tPLANS\tCHECKPOINT\t"
	}
	slowdown := wide || len(a.Tenants) > 0
	if slowdown {
		more += "SLOWDOWN\t"
	}
	shared := wide && report.Sharing(a.Jobs) > 1
	if shared {
		more += "BASE\tGATE\tSPEED\t"
	}
	owners := wide || slices.ContainsFunc(a.Jobs, func(r wire.Record) bool {
		return r.Spec.Owner != a.Jobs[0].Spec.Owner
	})
	if owners {
		more += "OWNER\t"
	}
	several := len(a.Devices) > 1 || wide && len(a.Devices) > 0
	if several {
		more += "DEVICE\t"
	}
	fmt.Fprintln(w, heads+more+"EXECUTOR\tREASON")
	for i := range a.Jobs {
		r := &a.Jobs[i]
		rate, left := report.Rate(r)
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%d\t%s\t", r.Spec.Name, r.State, iterations(r), rate, left,
			report.LastLoss(r), report.ArenaInForce(r), max(1, r.Spec.Priority), report.Age(r, now))
		if wide {
			fmt.Fprintf(w, "%s\t%s\t%d\t%s\t", r.SlotPeak, r.Host, r.Plans, report.CheckpointedIterations(r))
		}
		if slowdown {
			fmt.Fprintf(w, "%s\t", report.Slowdown(r))
		}
		if shared {
			fmt.Fprintf(w, "%s\t%v\t%s\t", r.Base,
				text.Duration(r.Gate.Round(time.Microsecond)), report.ExpectedSpeed(r))
		}
		if owners {
			fmt.Fprintf(w, "%s\t", cmp.Or(r.Spec.Owner, "-"))
		}
		if several {
			fmt.Fprintf(w, "%s\t", deviceOf(r, a.Devices))
		}
		fmt.Fprintf(w, "%s\t%s\n", cmp.Or(r.Executor, "-"), report.Reason(r))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for line := range strings.Lines(table.String()) {
		if _, err := fmt.Fprintln(out, strings.TrimRight(line, " \n")); err != nil {
			return err
		}
	}
	return nil
}

// deviceOf is the name of the device that a job is planned for on.
func deviceOf(r *wire.Record, devices []wire.DeviceState) string {
	if r.On != "" || r.Executor == "" || len(devices) == 0 || !devices[0].Own {
		return cmp.Or(r.On, "-")
	}
	return devices[0].Name
}

// iterations are how many a job has done, and of how many; those of a script end when it does.
func iterations(r *wire.Record) string {
	if r.Spec.Script {
		return fmt.Sprint(r.Iteration)
	}
	return fmt.Sprintf("%d/%d", r.Iteration, r.Spec.Iterations)
}
