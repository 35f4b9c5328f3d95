package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"tensile/bench/calibrate"
	"tensile/device"
	"tensile/predictor"
)

// calibrateFlags say what is measured and where the model goes.
type calibrateFlags struct {
	plan    planFlags
	time    time.Duration
	output  string
	samples string
	seed    uint64
}

func calibrateCommand() *cobra.Command {
	var f calibrateFlags
	c := &cobra.Command{
		Use:   "calibrate",
		Short: "Measure this machine and build its latency model for first plans",
		Long: `Train small networks of random shapes for a while, alone and beside other work, and build a model of op
latencies on this machine. run, plan and controller find it at its default path. Use the device flags
that jobs will run with: another number of threads counts as another device.`,
		Example: "  tensile device calibrate --device cpu",
		Args:    noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			return f.run(c.Context(), c.OutOrStdout(), c.ErrOrStderr())
		},
	}
	f.plan.registerDevice(c)
	c.Flags().Lookup("link").Hidden = true
	c.Flags().DurationVar(&f.time, "time", time.Minute, "measuring time; training takes a bit longer")
	c.Flags().StringVar(&f.output, "output", "",
		"output file; overwritten if it exists (default: in the user's cache folder)")
	c.Flags().StringVar(&f.samples, "samples", "", "also write the measurements to this JSON file")
	c.Flags().Uint64Var(&f.seed, "seed", 1, "random seed for the networks")
	return c
}

func (f *calibrateFlags) run(ctx context.Context, out, progress io.Writer) error {
	if f.plan.simulated() {
		return fmt.Errorf("--device %s: its time is the roofline's already; calibrate a real device, such as cpu",
			f.plan.device)
	}
	if f.plan.fake {
		return errors.New("--fake has the times of the roofline already; calibrate a real device, such as cpu")
	}
	if f.time <= 0 || f.time > time.Hour {
		return errors.New("--time: give more than 0, up to 1h")
	}
	for _, file := range []struct{ flag, path string }{{"--output", f.output}, {"--samples", f.samples}} {
		if err := checkOutput(file.flag, file.path); err != nil {
			return err
		}
	}
	d, _, err := openDevice(&f.plan)
	if err != nil {
		return err
	}
	defer d.Close()
	if f.output == "" {
		if f.output, err = f.plan.modelPath(d); err != nil {
			return fmt.Errorf("no folder for the model: %w; name a file with --output", err)
		}
	}
	o := calibration(d)
	o.Time, o.Seed = f.time, f.seed
	m, samples, err := calibrateDevice(ctx, d, f.plan.modelName(d), o, 0.15, progress)
	if err != nil {
		return err
	}
	if f.samples != "" {
		content, err := json.Marshal(samples)
		if err != nil {
			return err
		}
		if err := os.WriteFile(f.samples, content, 0o644); err != nil {
			return err
		}
	}
	if err := keep(m, f.output); err != nil {
		return err
	}
	fmt.Fprintf(out, "%s: %s, %s\n", f.output, m.Devices[0].Name, m.Note)
	return nil
}

// calibrateDevice makes a model of a device, and shows a bar meanwhile.
func calibrateDevice(ctx context.Context, d device.Device, name string, o calibrate.Options, effort float64,
	progress io.Writer) (*predictor.Model, []predictor.Sample, error) {
	bar := newBar(progress)
	defer bar.end()
	return calibrate.Model(ctx, d, name, o, effort, bar.show)
}
