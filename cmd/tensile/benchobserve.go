package main

import (
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"tensile/bench"
	"tensile/models"
)

func benchObserveCommand() *cobra.Command {
	var o bench.ObserveOptions
	var json bool
	c := &cobra.Command{
		Use:   "observe",
		Short: "Benchmark the cost of page viewers and metric scrapes for a controller and its jobs",
		Long: `Start a controller and its executor as separate processes, train copies of a network, and alternate
between measuring without viewers and with viewers of the page and a metrics scraper: processor time of
the controller, iterations of all jobs, and the cost for the executor. Processor time is what Linux
reports per process, in hundredths of a second. The jobs are stopped at the end.`,
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) (err error) {
			if o.Jobs < 1 || o.Viewers < 0 || o.Rounds < 1 || o.Rounds > endless {
				return fmt.Errorf("%s: give at least one job and one round (up to %d), and 0 viewers or more",
					c.CommandPath(), endless)
			}
			if o.Batch < 0 || o.Batch > models.MaxBatch {
				return fmt.Errorf("--batch %d: give 1 to %d, or 0 for that of submit", o.Batch, models.MaxBatch)
			}
			if o.Window < time.Second || o.Scrape < time.Second/10 {
				return fmt.Errorf("--window %v --scrape %v: give 1s and 100ms or more", o.Window, o.Scrape)
			}
			if o.Program, err = os.Executable(); err != nil {
				return fmt.Errorf("find the program that a controller is: %w", err)
			}
			if err := checkWritable("TMPDIR", os.TempDir()); err != nil {
				return err
			}
			if o.Dir, err = os.MkdirTemp("", "tensile-bench-"); err != nil {
				return err
			}
			defer os.RemoveAll(o.Dir)
			var end func()
			o.Progress, end = timeLeft(c.ErrOrStderr())
			r, err := bench.MeasureObserve(c.Context(), o)
			end()
			return printShare(c.OutOrStdout(), r, json, err)
		},
	}
	c.Flags().StringVar(&o.Device, "device", "sim:a6000", "device of the controller, as in controller --device")
	complete(c, "device", append([]string{"cpu", "cuda"}, simDevices()...)...)
	c.Flags().StringVar(&o.Model, "model", "lenet", "network that each job trains")
	complete(c, "model", models.Names()...)
	c.Flags().IntVar(&o.Batch, "batch", 0, "batch size of each job (default: as for submit)")
	c.Flags().IntVar(&o.Jobs, "jobs", 50, "number of training jobs")
	c.Flags().IntVar(&o.Viewers, "viewers", 2, "number of browsers: the first shows the overview, each other one a job")
	c.Flags().DurationVar(&o.Scrape, "scrape", 15*time.Second, "interval between metric scrapes")
	c.Flags().DurationVar(&o.Window, "window", 30*time.Second, "duration of one measurement")
	c.Flags().IntVar(&o.Rounds, "rounds", 5, "number of measurements without viewers, and as many with them")
	c.Flags().BoolVar(&json, "json", false, "print a single JSON document")
	return c
}
