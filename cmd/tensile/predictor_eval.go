package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"tensile/predictor"
)

// evalFlags say what is judged on what.
type evalFlags struct {
	trainFlags
	model  string
	test   string
	split  string
	e2e    string
	beside string
	json   bool
}

func predictorEvalCommand() *cobra.Command {
	var f evalFlags
	c := &cobra.Command{
		Use:   "eval",
		Short: "Compare predictions with measured latencies",
		Long: `Compare predictions with measured latencies. The model is read from a file or trained first, on ops of
the kinds that are to be predicted. It is evaluated on a file (--test), on ops held out from training
(--split), or on traced networks (--e2e).

  random   a random tenth of the ops
  large    the tenth of each kind with the longest roofline times
  NAME     all ops of a device family, such as A100`,
		Example: "  tensile predictor eval --train neusight --test neusight/ops/test_linear.csv\n  tensile " +
			"predictor eval --train neusight --split V100 --json",
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := f.check(); err != nil {
				return err
			}
			report, err := f.run(c.ErrOrStderr())
			if err != nil {
				return err
			}
			if f.json {
				return printJSON(c.OutOrStdout(), report)
			}
			return report.WriteTable(c.OutOrStdout())
		},
	}
	f.register(c)
	c.Flags().StringVar(&f.model, "model", "", "latency model to evaluate, instead of --train")
	c.Flags().StringVar(&f.test, "test", "", "CSV file with measured ops to predict")
	c.Flags().StringVar(&f.split, "split", "",
		"hold out part of --train and predict it: random, large or a device family")
	c.Flags().StringVar(&f.e2e, "e2e", "", "folder with traced networks to predict, one subfolder per device")
	c.Flags().StringVar(&f.beside, "beside", "",
		"with --e2e: folder with another predictor's results for the same networks, under the same file names")
	c.Flags().BoolVar(&f.json, "json", false, "print a single JSON document")
	return c
}

func (f *evalFlags) check() error {
	judged := 0
	for _, s := range []string{f.test, f.split, f.e2e} {
		if s != "" {
			judged++
		}
	}
	switch {
	case (f.dir == "") == (f.model == ""):
		return errors.New("give one of --train DIR and --model FILE: what predicts")
	case judged != 1:
		return errors.New("give one of --test FILE.csv, --split SPLIT and --e2e DIR: what is predicted")
	case f.beside != "" && f.e2e == "":
		return errors.New("--beside compares predictions of traced networks: name them with --e2e")
	case f.split != "" && f.dir == "":
		return errors.New("--split holds back ops of --train DIR, which is missing")
	}
	return f.trainFlags.check()
}

// outcome is what eval prints.
type outcome interface{ WriteTable(io.Writer) error }

func (f *evalFlags) run(progress io.Writer) (outcome, error) {
	if f.model != "" {
		m, err := predictor.Load(f.model)
		if err != nil {
			return nil, err
		}
		return f.judge(m)
	}
	if f.split != "" {
		return f.heldBack(progress)
	}
	_, devices, err := f.read(nil)
	if err != nil {
		return nil, err
	}
	var kinds []string // those that the test asks for
	if f.test != "" {
		tests, err := predictor.ReadSamples(f.test, devices)
		if err != nil {
			return nil, err
		}
		for i := range tests {
			kinds = append(kinds, tests[i].Kind)
		}
	}
	samples, devices, err := f.read(kinds)
	if err != nil {
		return nil, err
	}
	m, err := f.train(samples, devices, "", progress)
	if err != nil {
		return nil, err
	}
	return f.judge(m)
}

// judge has a model predict what --test or --e2e name.
func (f *evalFlags) judge(m *predictor.Model) (outcome, error) {
	if f.e2e != "" {
		networks, skipped, err := predictor.ReadTraces(f.e2e, f.beside, m.Devices)
		if err != nil {
			return nil, fmt.Errorf("--e2e %w", err)
		}
		e := predictor.EvaluateTraces(m, networks)
		e.Skipped = append(e.Skipped, skipped...)
		return e, nil
	}
	tests, err := predictor.ReadSamples(f.test, m.Devices)
	if err != nil {
		return nil, err
	}
	return predictor.Evaluate(m, tests), nil
}

func (f *evalFlags) heldBack(progress io.Writer) (outcome, error) {
	samples, devices, err := f.read(nil)
	if err != nil {
		return nil, err
	}
	var train, test []predictor.Sample
	switch f.split {
	case "random":
		train, test = predictor.SplitRandom(samples, 0.1, f.options.Seed)
	case "large":
		train, test = predictor.SplitLarge(samples, devices, 0.1)
	default:
		train, test = predictor.SplitFamily(samples, devices, f.split)
		if len(test) == 0 {
			return nil, fmt.Errorf("--split %s: no device of that family was measured; choose random, large or one "+
				"such as %s", f.split, devices[samples[0].Device].Family())
		}
	}
	m, err := f.train(train, devices, "", progress)
	if err != nil {
		return nil, err
	}
	return predictor.Evaluate(m, test), nil
}
