package main

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"time"

	"github.com/spf13/cobra"

	"tensile/bench"
)

// tableFlags say how tables are printed.
type tableFlags struct {
	json bool
	csv  string
}

func (f *tableFlags) register(c *cobra.Command) {
	c.Flags().BoolVar(&f.json, "json", false, "print a single JSON document")
	c.Flags().StringVar(&f.csv, "csv", "", "also write each table to TABLE.csv in this folder")
}

// print prints tables as Markdown or JSON.
func (f *tableFlags) print(w io.Writer, t *bench.Tables) error {
	if f.csv != "" {
		if err := t.WriteCSV(f.csv); err != nil {
			return fmt.Errorf("--csv: %w", err)
		}
	}
	if f.json {
		return printJSON(w, t)
	}
	return t.WriteMarkdown(w)
}

// makeFolder makes the folder that a flag names, if it names one.
func makeFolder(flag, dir string) error {
	if dir == "" {
		return nil
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return fmt.Errorf("%s: the folder %s cannot be made: %w", flag, dir, reason(err))
	}
	return nil
}

func benchPaperCommand() *cobra.Command {
	var f tableFlags
	var quick bool
	var repeats int
	var data, plots string
	c := &cobra.Command{
		Use:   "paper",
		Short: "Reproduce the tables and figures of the papers with all policies",
		Long: `Train the networks of the TENSILE paper in virtual time on a simulated A6000 with every policy: alone,
in up to four copies, and five different networks together. Print the paper's tables I to IV and figures
2, 6 and 7 beside its own numbers. All policies get the same graphs, update order, latencies and link;
policies that plan for a budget get the budget at which tensile-paper stops by itself. The tables of the
SuperNeurons paper follow, and those of the SmartPool and AutoSwap paper, as predicted for its
GTX 1080 Ti. This takes a quarter of an hour on an idle machine, or a minute with --quick.`,
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			o := bench.PaperWhole()
			if quick {
				o = bench.PaperQuick()
			}
			if c.Flags().Changed("repeats") {
				if repeats < 1 || repeats > endless {
					return fmt.Errorf("--repeats %d: give 1 to %d", repeats, endless)
				}
				o.Repeats = repeats
			}
			if err := cmp.Or(makeFolder("--csv", f.csv), makeFolder("--plots", plots)); err != nil {
				return err // before minutes of measuring
			}
			if c.Flags().Changed("data") {
				if _, err := os.Stat(data); err != nil {
					return fmt.Errorf("--data %s: %w: give the folder with the logs, or leave it out", data,
						reason(err))
				}
			}
			o.Data = data
			debug.SetGCPercent(collectedAt)
			var end func()
			o.Progress, end = timeLeft(c.ErrOrStderr())
			r, err := bench.MeasurePaper(c.Context(), o)
			end()
			if err != nil {
				return err
			}
			if plots != "" {
				if err := r.Draw(c.Context(), plots); err != nil {
					return fmt.Errorf("--plots: %w", err)
				}
			}
			return f.print(c.OutOrStdout(), &r.Tables)
		},
	}
	c.Flags().BoolVar(&quick, "quick", false, "run a subset that takes about a minute")
	c.Flags().IntVar(&repeats, "repeats", 0,
		"number of measurements per scene, with different noise (default 3, with --quick 1)")
	c.Flags().StringVar(&data, "data", "../shared/data/tensile", "folder with the logs of the TENSILE authors")
	c.Flags().StringVar(&plots, "plots", "", "draw memory against time to this folder, as SVG and PNG")
	f.register(c)
	return c
}

// collectedAt is by how many per cent the heap grows between two collections while policies are compared: that takes a
// fifth less processor time than Go's 100, for some hundred megabytes.
const collectedAt = 400

// timeLeft returns what draws a bar with the time that is left, on a terminal, and what takes it away.
func timeLeft(out io.Writer) (progress func(done float64), end func()) {
	if !isTerminal(out) {
		return nil, func() {}
	}
	b, since := newBar(out), time.Now()
	return func(done float64) {
		what := ""
		if took := time.Since(since); done > 0 && took > 2*time.Second {
			left := time.Duration(float64(took) * (1 - done) / done)
			what = fmt.Sprintf("%s left", cmp.Or(left.Round(time.Second), time.Second))
		}
		b.show(done, what)
	}, b.end
}

func benchRealCommand() *cobra.Command {
	var f tableFlags
	var device planFlags
	var quick bool
	c := &cobra.Command{
		Use:   "real",
		Short: "Train small networks under every policy on a real device and compare the bits",
		Long: `Train small networks with every policy on a real device, each run right after one without a plan.
Report the slowdown of iterations, the difference between identical runs, and whether losses and
weights are bit-identical. Times are meaningless on a busy machine, and a note says so. This takes a
minute.`,
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			if device.simulated() {
				return fmt.Errorf("--device %s has no data to compare: use cpu or cuda, or tensile bench paper",
					device.device)
			}
			options := bench.RealSmall
			if quick {
				options = bench.RealQuick
			}
			o, err := options()
			if err != nil {
				return err
			}
			if err := makeFolder("--csv", f.csv); err != nil {
				return err
			}
			d, _, err := openDevice(&device)
			if err != nil {
				return err
			}
			defer d.Close()
			var end func()
			o.Progress, end = timeLeft(c.ErrOrStderr())
			r, err := bench.MeasureReal(c.Context(), d, o)
			end()
			if err != nil {
				return err
			}
			return f.print(c.OutOrStdout(), r)
		},
	}
	c.Flags().BoolVar(&quick, "quick", false, "train only lenet, once per policy (takes seconds)")
	device.registerDevice(c)
	f.register(c)
	return c
}
