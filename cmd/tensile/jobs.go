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

	"tensile/controller"
	"tensile/graph"
	"tensile/internal/bus"
	"tensile/internal/text"
	"tensile/wire"
)

func jobsCommand() *cobra.Command {
	var f clientFlags
	var asJSON, watch, wide, mine bool
	c := &cobra.Command{
		Use:   "jobs",
		Short: "List the jobs of a controller",
		Long: `List the jobs of a controller. IT/S is how many iterations a job does in a second of the
device's time, which is virtual on sim, LEFT how long it still takes at that rate, ARENA the device
memory of the plan with which it trains, AGE the time since it was submitted. OWNER, where jobs have
several, is the user who submitted a job; - is an administrator. With --wide, SLOT PEAK is the peak
of the plan in force, PLANS how many have come into force, and CHECKPOINT after how many iterations
the newest checkpoint was taken. Where jobs share memory, BASE is what a job holds between two
iterations, GATE how long it waits for the memory of others in an iteration, and SPEED how fast it is
expected to be, as a share of its speed alone and without a plan.`,
		Args: noArguments,
	}
	c.RunE = f.with(func(ctx context.Context, conn *bus.Conn, _ []string, out io.Writer) error {
		whole := make(map[string]*wire.Result) // results that were loaded
		for first := true; ; first = false {
			a, err := ask(ctx, conn, wire.Request{Verb: wire.Jobs})
			if watch && ctx.Err() != nil {
				return errQuiet
			} else if err != nil {
				return err
			}
			head := used(a)
			if mine {
				me, _, _ := bus.UserName(conn.User())
				a.Jobs = slices.DeleteFunc(a.Jobs, func(r wire.Record) bool { return r.Spec.Owner != me })
			}
			if asJSON {
				if a.Jobs == nil {
					a.Jobs = []wire.Record{}
				}
				if err := loadResults(ctx, conn, a.Jobs, whole); err != nil {
					return err
				}
				err = printJSON(out, a.Jobs)
			} else {
				switch {
				case watch && isTerminal(out):
					fmt.Fprint(out, "\x1b[H\x1b[J")
				case !first:
					fmt.Fprintln(out)
				}
				err = writeJobs(out, head, a, wide, time.Now())
			}
			if err != nil || !watch {
				return err
			}
			select {
			case <-ctx.Done():
				return errQuiet
			case <-time.After(time.Second):
			}
		}
	})
	f.register(c)
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON document and nothing else; with --watch, one a second")
	c.Flags().BoolVar(&watch, "watch", false, "go on, once a second, until interrupted")
	c.Flags().BoolVar(&mine, "mine", false, "leave out the jobs of others")
	c.Flags().BoolVar(&wide, "wide", false, "print all columns")
	return c
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
	shared := wide && sharing(a.Jobs) > 1
	if shared {
		more += "BASE\tGATE\tSPEED\t"
	}
	owners := wide || slices.ContainsFunc(a.Jobs, func(r wire.Record) bool {
		return r.Spec.Owner != a.Jobs[0].Spec.Owner
	})
	if owners {
		more += "OWNER\t"
	}
	fmt.Fprintln(w, heads+more+"EXECUTOR\tREASON")
	for i := range a.Jobs {
		r := &a.Jobs[i]
		rate, left := rateOf(r)
		fmt.Fprintf(w, "%s\t%s\t%d/%d\t%s\t%s\t%s\t%s\t%d\t%s\t", r.Spec.Name, r.State, r.Iteration, r.Spec.Iterations,
			rate, left, lastLoss(r), inForce(r), max(1, r.Spec.Priority), age(r, now))
		if wide {
			fmt.Fprintf(w, "%s\t%s\t%d\t%s\t", r.SlotPeak, r.Host, r.Plans, checkpointed(r))
		}
		if shared {
			fmt.Fprintf(w, "%s\t%v\t%s\t", r.Base, text.Duration(r.Gate), speed(r))
		}
		if owners {
			fmt.Fprintf(w, "%s\t", cmp.Or(r.Spec.Owner, "-"))
		}
		fmt.Fprintf(w, "%s\t%s\n", cmp.Or(r.Executor, "-"), r.Why)
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

// speed is that expected of a job beside the others.
func speed(r *wire.Record) string {
	if r.Speed == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f", r.Speed)
}

// sharing is how many jobs there are that share memory.
func sharing(jobs []wire.Record) (n int) {
	for i := range jobs {
		if jobs[i].Sharing != wire.NoSharing && !jobs[i].State.Over() {
			n++
		}
	}
	return n
}

// used says in a line what the jobs have of the budget, and how many there are.
func used(a wire.Answer) string {
	var held, need graph.Bytes
	used, host := controller.Used(&a)
	running, waiting, parked := 0, 0, 0
	for _, r := range a.Jobs {
		for _, h := range r.Held {
			held += h.Bytes
		}
		switch {
		case r.State == wire.Parked:
			parked++
		case r.State == wire.Queued:
			waiting++
			need = cmp.Or(need, r.Need)
		case !r.State.Over():
			running++
		}
	}
	line := used.String()
	if a.Budget > 0 {
		line += " of " + a.Budget.String()
	}
	line += " used"
	if a.Contexts.Sum() > 0 {
		line += fmt.Sprintf(" with %s", a.Contexts)
	}
	line += fmt.Sprintf(", %d running, %d waiting", running, waiting)
	if need > 0 {
		line += " for " + need.String()
	}
	if parked > 0 {
		line += fmt.Sprintf(", %d parked", parked)
	}
	if held > 0 {
		line += fmt.Sprintf("; executors that cannot be reached may have %s of it", held)
	}
	if a.HostMemory > 0 {
		line += fmt.Sprintf("; %s of %s of host memory", host, a.HostMemory)
	}
	if a.Trouble != "" {
		line += "; the controller is in trouble: " + a.Trouble
	}
	if a.Sharing != wire.NoSharing && sharing(a.Jobs) > 1 {
		line += fmt.Sprintf("; jobs share memory by %s", a.Sharing)
	}
	return line + "; device " + a.Device
}

// checkpointed is after how many iterations the newest checkpoint of a job was taken.
func checkpointed(r *wire.Record) string {
	if r.Checkpoint == nil {
		return "-"
	}
	return fmt.Sprint(r.Checkpoint.Iteration)
}

// inForce is the arena of the plan with which a job trains now.
func inForce(r *wire.Record) graph.Bytes {
	if r.State.Over() {
		return 0
	}
	return r.Arena
}

// rateOf is how many iterations of a job that runs are done in a second, and how long the rest will take.
func rateOf(r *wire.Record) (rate, left string) {
	if r.Pace <= 0 || r.State != wire.Training {
		return "-", "-"
	}
	rate = fmt.Sprintf("%.3g", 1/r.Pace.Seconds())
	if r.Pace < 10*time.Millisecond {
		rate = fmt.Sprintf("%.0f", 1/r.Pace.Seconds())
	}
	return rate, short(time.Duration(float64(r.Spec.Iterations-r.Iteration) * float64(r.Pace)))
}

// lastLoss is that of a job's last iteration that is known.
func lastLoss(r *wire.Record) string {
	loss := r.Loss
	if r.Result != nil && r.Result.Last != nil {
		loss = r.Result.Last
	}
	if loss == nil {
		return "-"
	}
	return fmt.Sprintf("%.4g", *loss)
}

func age(r *wire.Record, now time.Time) string {
	if r.Submitted == 0 { // by a controller that did not note it
		return "-"
	}
	return short(now.Sub(time.Unix(0, int64(r.Submitted))))
}

// short is a duration in its two largest units: 7s, 3m12s, 2h5m, 4d11h.
func short(d time.Duration) string {
	const day = 24 * time.Hour
	d = max(0, d)
	switch {
	case d >= day:
		return fmt.Sprintf("%dd%dh", d/day, d%day/time.Hour)
	case d >= time.Hour:
		return fmt.Sprintf("%dh%dm", d/time.Hour, d%time.Hour/time.Minute)
	case d >= time.Minute:
		return fmt.Sprintf("%dm%ds", d/time.Minute, d%time.Minute/time.Second)
	}
	return fmt.Sprintf("%ds", d/time.Second)
}
