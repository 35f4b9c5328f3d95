package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"tensile/observe/report"
	"tensile/wire"
	"tensile/wire/bus"
)

// Exit statuses of a command that has waited for jobs; 0: all have finished.
const (
	someFailed  = 1
	someStopped = 2 // and none has failed
	// a loss, or what was learned, has become no finite number, and none has failed otherwise
	someDiverged = 3
)

func waitCommand() *cobra.Command {
	var f clientFlags
	var asJSON bool
	c := &cobra.Command{
		Use:   "wait JOB...",
		Short: "Wait for jobs to end and report how they ended",
		Long: `Wait until jobs have ended. The exit status is 0 if all finished, 1 if any failed, 3 if the loss of one
was no longer a finite number and none failed otherwise, 2 if one was stopped and none failed, and 130 if
the wait was interrupted, which does not affect the jobs.`,
		Example: "  tensile job wait vgg16.1 vgg16.2 && echo trained",
		Args:    needJobs,
	}
	c.RunE = f.withController(func(ctx context.Context, conn *bus.Conn, args []string, out io.Writer) error {
		var jobs []wire.Record
		for _, name := range args {
			all, err := recordsOf(ctx, conn, name)
			if err != nil {
				return err
			}
			jobs = append(jobs, all...)
		}
		return await(ctx, conn, jobs, asJSON, out)
	})
	f.register(c)
	c.Flags().BoolVar(&asJSON, "json", false, "print a single JSON document with the results of the jobs")
	return c
}

// await waits until jobs are over, prints how each ended, and returns an error for those that have not finished.
func await(ctx context.Context, conn wire.Bus, jobs []wire.Record, asJSON bool, out io.Writer) error {
	var problems []error
	status := someStopped
	ended := []wire.Record{}
	for i, job := range jobs {
		r, err := end(ctx, conn, job)
		if ctx.Err() != nil {
			var names []string
			for _, rest := range jobs[i:] {
				names = append(names, rest.Spec.Name)
			}
			return fmt.Errorf("%w: jobs go on; tensile job wait %s waits for them again", errInterrupted,
				strings.Join(names, " "))
		} else if err != nil {
			return err
		}
		ended = append(ended, r)
		if r.State != wire.JobFinished {
			problems = append(problems, errors.New(cameTo(r)))
		} else if !asJSON {
			fmt.Fprintln(out, cameTo(r))
		}
		if s := statusOf(&r); s == someFailed || s == someDiverged && status == someStopped {
			status = s
		}
	}
	if asJSON {
		if err := printJSON(out, ended); err != nil {
			return err
		}
	}
	if len(problems) == 0 {
		return nil
	}
	return &exitError{errors.Join(problems...), status}
}

// end waits until a job is over, and returns what is known of it then.
func end(ctx context.Context, conn wire.Bus, job wire.Record) (wire.Record, error) {
	type news struct {
		record wire.Record
		err    error
	}
	over := make(chan news, 1)
	var once sync.Once
	tell := func(n news) { once.Do(func() { over <- n }) }
	stop, err := conn.Watch(ctx, wire.RecordKey(job.Spec.Name), func(_ string, value []byte) {
		if value == nil {
			tell(news{err: fmt.Errorf("job %s is not remembered any more", job.Spec.Name)})
			return
		}
		r, err := wire.DecodeAs[wire.Record](value)
		switch {
		case err != nil:
			tell(news{err: err})
		case r.Spec.ID != job.Spec.ID:
			tell(news{err: fmt.Errorf("job %s is not remembered any more: there is a new one of that name",
				job.Spec.Name)})
		case r.State.Over():
			tell(news{record: r})
		}
	})
	if err != nil {
		return wire.Record{}, err
	}
	defer stop()
	select {
	case n := <-over:
		return n.record, n.err
	case <-ctx.Done():
		return wire.Record{}, context.Cause(ctx)
	}
}

// statusOf is the exit status for a job that has not finished.
func statusOf(r *wire.Record) int {
	switch {
	case r.Diverged:
		return someDiverged
	case r.State == wire.JobFailed:
		return someFailed
	}
	return someStopped
}

// cameTo says how a job that is over has ended.
func cameTo(r wire.Record) string {
	line := fmt.Sprintf("job %s %s after %d iterations", r.Spec.Name, r.State, r.Iteration)
	if r.Reason != "" {
		return line + ": " + report.Reason(&r)
	}
	if r.Result != nil && r.Result.Saved != "" {
		line += ", saved in " + r.Result.Saved
	}
	return line
}
