package main

import (
	"errors"
	"log/slog"
	"os"
	"time"

	"github.com/spf13/cobra"

	"tensile/device/lease/process"
)

// leaseCommand is the process of a device's lease. Executors start it.
func leaseCommand() *cobra.Command {
	var name, path string
	var linger time.Duration
	var log logFlags
	c := &cobra.Command{
		Use:    "lease",
		Short:  "Serve the memory lease of a device to the executors that share it",
		Hidden: true,
		Args:   noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			if name == "" {
				return errors.New("lease: name a device's lease with --name")
			}
			listener, err := process.Listen(name)
			if _, held := errors.AsType[*process.HeldError](err); held {
				return nil // executors may start one each
			} else if err != nil {
				return err
			}
			process.Serve(c.Context(), name, listener, process.ServeOptions{Linger: linger,
				Log: lines(log.logger(os.Stderr), slog.LevelWarn)})
			if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Size() == 0 {
				return os.Remove(path)
			}
			return nil
		},
	}
	log.register(c)
	c.Flags().StringVar(&name, "name", "", "name of the lease")
	c.Flags().StringVar(&path, "log", "", "log file; removed on exit if it is empty")
	c.Flags().DurationVar(&linger, "linger", 0, "exit after this time without connections (default 30s)")
	return c
}
