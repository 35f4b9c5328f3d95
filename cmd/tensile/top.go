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
		Short: "Show the device and the jobs of a controller live",
		Long: `Show the device and the jobs of a controller, once a second: the memory by job, how fast each job
gets on, its loss. Keys sort the jobs, open one, ask why it waits or is slow, park, resume and stop it. Into
a file or a pipe it prints what tensile jobs --watch prints.`,
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
	c.Flags().BoolVar(&mine, "mine", false, "leave out the jobs of others")
	return c
}
