package main

import (
	"context"
	"errors"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"tensile/observe/top"
	"tensile/wire"
	"tensile/wire/bus"
)

func topCommand() *cobra.Command {
	var f clientFlags
	var mine bool
	c := &cobra.Command{
		Use:   "top",
		Short: "Show devices and jobs of a controller live",
		Long: `Show devices and jobs of a controller, refreshed every second: memory, progress and loss of each job.
Keys sort the jobs, open one, explain why it waits or is slow, and park, resume or stop it. If standard
output is a file or a pipe, print the output of tensile jobs --watch instead.`,
		Args: noArguments,
	}
	c.RunE = f.withController(func(ctx context.Context, conn *bus.Conn, _ []string, out io.Writer) error {
		if !isTerminal(out) {
			return listJobs(ctx, conn, listing{watch: true, mine: mine}, out)
		}
		me, _, _ := bus.UserName(conn.User())
		m := top.New(func(q wire.Request) (wire.Answer, error) { return ask(ctx, conn, q) }, time.Now, me, mine)
		err := top.Run(ctx, m, os.Stdout)
		if errors.Is(err, top.ErrInterrupted) {
			return errQuiet
		}
		return err
	})
	f.register(c)
	c.Flags().BoolVar(&mine, "mine", false, "show only your own jobs")
	return c
}
