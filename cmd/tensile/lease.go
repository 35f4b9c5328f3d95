package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"time"

	"github.com/spf13/cobra"

	"tensile/internal/lifelock"
	"tensile/lease"
	"tensile/lease/method"
	"tensile/lease/process"
)

// leaseCommand is the process of a device's lease. Executors start it.
func leaseCommand() *cobra.Command {
	var folder string
	var linger time.Duration
	var log logFlags
	c := &cobra.Command{
		Use:    "lease",
		Short:  "Grant the jobs of a device their memory, for the executors that share it",
		Hidden: true,
		Args:   noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			if folder == "" {
				return errors.New("lease: name the folder of a device's lease with --folder")
			}
			err := process.Serve(c.Context(), folder, process.ServeOptions{Lease: lease.Options{Methods: method.Of},
				Linger: linger, Log: lines(log.logger(os.Stderr), slog.LevelWarn)})
			if _, held := errors.AsType[*lifelock.HeldError](err); held || errors.Is(err, context.Canceled) {
				return nil // executors may start one each
			}
			return err
		},
	}
	log.register(c)
	c.Flags().StringVar(&folder, "folder", "", "folder of the device's lease")
	c.Flags().DurationVar(&linger, "linger", 0, "end when nobody was connected for so long (default 30s)")
	return c
}
