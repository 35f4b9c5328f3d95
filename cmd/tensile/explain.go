package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"tensile/scheduler"
	"tensile/wire"
	"tensile/wire/bus"
)

func explainCommand() *cobra.Command {
	var f clientFlags
	var priority int
	var asJSON bool
	c := &cobra.Command{
		Use:   "explain JOB [STORAGE]",
		Short: "Explain why a job waits or is slow and what would help, or how it went",
		Long: `Show for what a job has waited, and for how long. Of a job that is not over, show also who uses the
device's memory, where the time of an iteration goes, which copies the job waits for, and what the planner
would do with 1 GiB more and less budget (or a quarter of the budget if it is below 2 GiB). These are real
plans; they change nothing. With STORAGE, show the life of one storage during an
iteration instead, and the planner's reasons for it.

To explain a plan made here, without a controller, use tensile plan MODEL --explain.`,
		Example: "  tensile job explain vgg16\n  tensile job explain vgg16 --priority 5\n" +
			"  tensile job explain vgg16 fc6.w.m",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 || len(args) > 2 {
				return fmt.Errorf("%s: give one JOB and perhaps one of its storages; see %s --help", c.CommandPath(),
					c.CommandPath())
			}
			return wire.CheckName(args[0])
		},
		PreRunE: func(c *cobra.Command, args []string) error {
			switch {
			case !c.Flags().Changed("priority"):
				return nil
			case priority < 1 || priority > scheduler.MaxWeight:
				return fmt.Errorf("--priority %d: give 1 to %d", priority, scheduler.MaxWeight)
			case len(args) == 2:
				return fmt.Errorf("--priority is for a job: leave it out, or the storage %s", args[1])
			}
			return nil
		},
	}
	c.RunE = f.withController(func(ctx context.Context, conn *bus.Conn, args []string, out io.Writer) error {
		q := wire.Request{Verb: wire.Explain, Job: args[0], Priority: priority}
		if len(args) == 2 {
			q.Storage = args[1]
		}
		a, err := ask(ctx, conn, q)
		switch {
		case err != nil:
			return err
		case asJSON && a.Storage != nil:
			return printJSON(out, a.Storage)
		case a.Storage != nil:
			return a.Storage.WriteText(out)
		case a.Explained == nil:
			return fmt.Errorf("the controller has no answer about job %s: let it be of the same release", args[0])
		case asJSON:
			return printJSON(out, a.Explained)
		}
		return a.Explained.WriteText(out)
	})
	f.register(c)
	c.Flags().IntVar(&priority, "priority", 0, "also show what the planner would do if the job had this priority")
	c.Flags().BoolVar(&asJSON, "json", false, "print a single JSON document")
	return c
}
