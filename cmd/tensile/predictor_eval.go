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
		Long: `Compare predictions with measured latencies. The model is trained first, on the ops of
the kinds that are asked for, or read from a file. It is judged on a file (--test), on ops held back
from its training (--split), or on traced networks (--e2e).

  random   a tenth of the ops, by chance
  large    the tenth of each kind that takes longest by the roofline
  NAME     all ops of the devices of a family, such as A100`,
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
	c.Flags().StringVar(&f.model, "model", "", "model file, instead of --train")
	c.Flags().StringVar(&f.test, "test", "", "CSV file of measured ops to predict")
	c.Flags().StringVar(&f.split, "split", "",
		"predict ops held back from --train: random, large or a family of devices")
	c.Flags().StringVar(&f.e2e, "e2e", "", "folder of traced networks to predict, with a folder per device")
	c.Flags().StringVar(&f.beside, "beside", "",
		"with --e2e: what another predictor says of the same networks, in files of the same names")
	c.Flags().BoolVar(&f.json, "json", false, "print one JSON document and nothing else")
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
