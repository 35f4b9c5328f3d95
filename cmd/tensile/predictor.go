package main

import (
	"fmt"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"

	"tensile/predictor"
)

func predictorCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "predictor",
		Short: "Train, evaluate and inspect latency models",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("%s: there is no %q: choose train, eval or show", c.CommandPath(), args[0])
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error { return c.Help() },
	}
	c.AddCommand(predictorTrainCommand(), predictorEvalCommand(), predictorShowCommand())
	return c
}

// trainFlags say what a model is trained on, and how.
type trainFlags struct {
	dir     string
	options predictor.Options
}

func (f *trainFlags) register(c *cobra.Command) {
	c.Flags().StringVar(&f.dir, "train", "",
		"folder of measured ops in NeuSight's format: ops/train_*.csv and device_configs/*.json")
	c.Flags().Float64Var(&f.options.Effort, "effort", 1, "training effort relative to the recommended one")
	c.Flags().IntVar(&f.options.Nets, "nets", 1,
		"ensemble size: networks per group of ops, whose predictions are averaged")
	c.Flags().Uint64Var(&f.options.Seed, "seed", 1, "random seed for weights and sample order")
}

func (f *trainFlags) check() error {
	if !(f.options.Effort > 0 && f.options.Effort <= 100) {
		return fmt.Errorf("--effort %v: give more than 0, up to 100", f.options.Effort)
	}
	if f.options.Nets < 1 || f.options.Nets > 16 {
		return fmt.Errorf("--nets %d: give 1 to 16", f.options.Nets)
	}
	return nil
}

// read reads devices and training samples; only of the kinds that are wanted, if any are named.
func (f *trainFlags) read(kinds []string) ([]predictor.Sample, []predictor.Device, error) {
	devices, err := predictor.ReadDevices(filepath.Join(f.dir, "device_configs"))
	if err != nil {
		return nil, nil, err
	}
	files, err := filepath.Glob(filepath.Join(f.dir, "ops", "train_*.csv"))
	if err != nil {
		return nil, nil, err
	}
	if len(files) == 0 {
		return nil, nil, fmt.Errorf("--train %s: no ops/train_*.csv in it", f.dir)
	}
	var samples []predictor.Sample
	for _, file := range files {
		some, err := predictor.ReadSamples(file, devices)
		if err != nil {
			return nil, nil, err
		}
		samples = append(samples, some...)
	}
	return predictor.Relevant(samples, kinds), devices, nil
}

// train trains with a bar.
func (f *trainFlags) train(samples []predictor.Sample, devices []predictor.Device, note string,
	progress io.Writer) (*predictor.Model, error) {
	bar := newBar(progress)
	defer bar.end()
	o := f.options
	o.Progress = func(p predictor.Progress) {
		bar.show(p.Done, fmt.Sprintf("training %s, error %.3f", p.Group, p.Loss))
	}
	m, err := predictor.Train(samples, devices, o)
	if err != nil {
		return nil, err
	}
	m.Note = note
	return m, nil
}

func predictorTrainCommand() *cobra.Command {
	var f trainFlags
	var output string
	c := &cobra.Command{
		Use:   "train",
		Short: "Train a latency model on ops measured on GPUs",
		Long: `Train a latency model on ops measured on GPUs and write it to a file. This takes a few minutes. For the
CPU device use tensile device calibrate, which takes its own measurements.`,
		Example: "  tensile predictor train --train neusight --output gpu.model",
		Args:    noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			if f.dir == "" {
				return fmt.Errorf("--train: name the folder of measured ops")
			}
			if err := f.check(); err != nil {
				return err
			}
			if err := checkOutput("--output", output); err != nil {
				return err
			}
			samples, devices, err := f.read(nil)
			if err != nil {
				return err
			}
			m, err := f.train(samples, devices, fmt.Sprintf("%d measured ops", len(samples)), c.ErrOrStderr())
			if err != nil {
				return err
			}
			if err := m.Save(output); err != nil {
				return err
			}
			fmt.Fprintf(c.OutOrStdout(), "%s: a model of %d ops\n", output, len(samples))
			return nil
		},
	}
	f.register(c)
	c.Flags().StringVar(&output, "output", "gpu.model", "output file; overwritten if it exists")
	return c
}

func predictorShowCommand() *cobra.Command {
	var json bool
	c := &cobra.Command{
		Use:     "show FILE",
		Short:   "Show what a latency model was trained on and its size",
		Example: "  tensile predictor show gpu.model",
		Args:    needOne("FILE"),
		RunE: func(c *cobra.Command, args []string) error {
			m, err := predictor.Load(args[0])
			if err != nil {
				return err
			}
			if json {
				return printJSON(c.OutOrStdout(), m.Summary())
			}
			return m.Summary().WriteTable(c.OutOrStdout())
		},
	}
	c.Flags().BoolVar(&json, "json", false, "print a single JSON document")
	return c
}
