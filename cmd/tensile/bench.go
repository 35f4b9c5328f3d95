package main

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tensile/bench"
	"tensile/pool"
)

func benchCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "bench",
		Short: "Measure and compare, on fixed inputs",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("%s: there is no benchmark %q: choose pool or controller", c.CommandPath(), args[0])
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error { return c.Help() },
	}
	c.AddCommand(benchPoolCommand(), benchControllerCommand())
	return c
}

func benchPoolCommand() *cobra.Command {
	var o bench.PoolOptions
	var json bool
	c := &cobra.Command{
		Use:   "pool",
		Short: "Compare the ways to pack: heights and times on hard instances, training steps and our own plans",
		Long: `Pack with each of the methods (` + strings.Join(pool.Methods(), ", ") + `), check every layout, and print how
high it is above the lower bound and how long the packing took: the least of three times, or the only one if it is over a
second. Expect a few minutes for all of it.`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("%s: %q is not wanted: say with --data and --networks what is packed", c.CommandPath(), args[0])
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			if o.Rounds < 1 || o.Rounds > endless {
				return fmt.Errorf("--rounds %d: give 1 to %d", o.Rounds, endless)
			}
			report, err := bench.MeasurePool(c.Context(), o)
			if err != nil {
				return err
			}
			if json {
				return printJSON(c.OutOrStdout(), report)
			}
			return report.WriteTables(c.OutOrStdout())
		},
	}
	c.Flags().StringVar(&o.Data, "data", "../shared/data", "folder with the folders minimalloc (hard instances) and somas (training steps)")
	c.Flags().IntVar(&o.Rounds, "rounds", demanded, "rounds at most of a search that has a capacity to meet")
	c.Flags().StringSliceVar(&o.Networks, "networks", []string{"mlp", "lenet", "vgg16", "resnet50"}, "models whose plans are packed")
	c.Flags().BoolVar(&json, "json", false, "print one JSON document and nothing else")
	return c
}

func benchControllerCommand() *cobra.Command {
	o := bench.ControllerOptions{}
	c := &cobra.Command{
		Use:   "controller",
		Short: "Put a controller under load: executors that idle, jobs that come, reports",
		Long: `Start a server on disk and a controller in this process, connect executors over loopback that do nothing but what the
protocol demands, and measure how soon orders arrive, how long the plans for one more job take, and what becomes of reports
that come in numbers. The result is one JSON document.`,
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			if o.Executors < o.Jobs+1 || o.Jobs < 1 || o.Reports < 1 || o.For <= 0 {
				return fmt.Errorf("%s: give at least one job, more executors than jobs, and a positive rate and time", c.CommandPath())
			}
			dir, err := os.MkdirTemp("", "tensile-bench-")
			if err != nil {
				return err
			}
			defer os.RemoveAll(dir)
			r, err := bench.MeasureController(c.Context(), dir, o)
			if err != nil {
				return err
			}
			return printJSON(c.OutOrStdout(), r)
		},
	}
	c.Flags().IntVar(&o.Executors, "executors", 1000, "executors that are connected")
	c.Flags().IntVar(&o.Jobs, "jobs", 20, "jobs that are submitted, each to an executor")
	c.Flags().IntVar(&o.Reports, "reports", 10_000, "reports a second, of all jobs together")
	c.Flags().DurationVar(&o.For, "for", 10*time.Second, "how long reports come")
	c.Flags().StringVar(&o.Model, "model", "lenet", "what each job trains")
	return c
}
