package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"tensile/bench"
)

func benchCPUCommand() *cobra.Command {
	var o bench.CPUOptions
	var json bool
	c := &cobra.Command{
		Use:   "cpu",
		Short: "Benchmark the CPU device beside PyTorch on the same networks",
		Long: `Have PyTorch export eight networks, and train each with PyTorch and on the CPU device, in turns: Adam,
float32, without a plan. Processor time counts all threads.`,
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) (err error) {
			if o.Rounds < 1 || o.Steps < 1 || o.Rounds > endless || o.Steps > endless {
				return fmt.Errorf("--rounds %d --steps %d: give 1 to %d", o.Rounds, o.Steps, endless)
			}
			for _, n := range o.Threads {
				if n < 1 || n > maxThreads {
					return fmt.Errorf("--threads %d: give 1 to %d", n, maxThreads)
				}
			}
			if o.Dir, err = os.MkdirTemp("", "tensile-bench-"); err != nil {
				return err
			}
			defer os.RemoveAll(o.Dir)
			var end func()
			o.Progress, end = timeLeft(c.ErrOrStderr())
			r, err := bench.MeasureCPU(c.Context(), o)
			end()
			if err != nil && !json && len(r.Rows) > 0 { // minutes of measuring are not lost by an interrupt
				err = errors.Join(r.WriteTable(c.OutOrStdout()), err)
			}
			return printShare(c.OutOrStdout(), r, json, err)
		},
	}
	c.Flags().StringVar(&o.Python, "python", "python3", "interpreter with torch, onnx and numpy")
	c.Flags().StringSliceVar(&o.Networks, "networks", nil, "networks, by how their names begin (default: all)")
	c.Flags().IntSliceVar(&o.Threads, "threads", []int{1, 2}, "numbers of threads")
	c.Flags().IntVar(&o.Steps, "steps", 10, "iterations of a measurement")
	c.Flags().IntVar(&o.Rounds, "rounds", 3, "measurements of each")
	c.Flags().BoolVar(&json, "json", false, "print a single JSON document")
	return c
}
