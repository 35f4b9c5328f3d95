package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"tensile/bench/onnxcases"
	"tensile/device/cpu"
	"tensile/graph"
	"tensile/graph/text"
	"tensile/models"
	"tensile/models/onnx"
	"tensile/peak"
)

func onnxCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "onnx",
		Short: "Inspect ONNX files and test operator support",
		Long:  "Inspect ONNX files and test operator support. run, plan and submit accept an ONNX file as MODEL.",
	}
	c.AddCommand(onnxShowCommand(), onnxTestCommand())
	return c
}

func onnxShowCommand() *cobra.Command {
	var f workloadFlags
	var asJSON bool
	c := &cobra.Command{
		Use:     "show FILE",
		Short:   "Show operators, parameters, arithmetic and training memory of an ONNX file",
		Example: "  tensile models onnx show model.onnx --batch 32",
		Args:    needFile,
		RunE: func(c *cobra.Command, args []string) error {
			return f.showONNX(args[0], asJSON, c.OutOrStdout())
		},
	}
	f.register(c)
	c.Flags().BoolVar(&asJSON, "json", false, "print a single JSON document")
	return c
}

// needFile is the error for a command line that does not name one file.
func needFile(c *cobra.Command, args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("%s: name one file or folder", c.CommandPath())
	}
	return nil
}

// onnxFile describes an ONNX file.
type onnxFile struct {
	Name      string         `json:"name"`
	Producer  string         `json:"producer,omitempty"`
	Opset     int64          `json:"opset"`
	Operators map[string]int `json:"operators"` // nodes of each
	Params    int64          `json:"params"`
	MACs      int64          `json:"macs"` // Multiply-adds of a forward pass of the batch.
	Ops       int            `json:"ops"`  // Ops of the training graph; what follows is its memory without a plan.
	Peak      graph.Bytes    `json:"vanilla_peak_all_bytes"`
	PeakLive  graph.Bytes    `json:"vanilla_peak_live_bytes"`
}

func (f *workloadFlags) showONNX(path string, asJSON bool, out io.Writer) error {
	if !onnx.IsFile(path) {
		return fmt.Errorf("%s: name a file that ends in .onnx", path)
	}
	m, err := onnx.Read(nil, path)
	if err != nil {
		return err
	}
	w, err := f.load([]string{path})
	if err != nil {
		return err
	}
	tellNotes(w)
	g := w[0].Graph
	d := onnxFile{Name: g.Name, Producer: m.Producer, Opset: m.Version(), Operators: make(map[string]int),
		Params: g.Parameters(), MACs: models.MACs(g), Ops: len(g.Ops)}
	d.Peak, d.PeakLive = peak.Vanilla(g)
	for _, n := range m.Graph.Nodes {
		d.Operators[n.Op]++
	}
	if asJSON {
		return printJSON(out, d)
	}
	if _, err := fmt.Fprintf(out, "%s: %d nodes of operator set %d, made by %s\n", d.Name, len(m.Graph.Nodes), d.Opset,
		orUnknown(d.Producer)); err != nil {
		return err
	}
	for _, op := range slices.Sorted(maps.Keys(d.Operators)) {
		if _, err := fmt.Fprintf(out, "  %4d %s\n", d.Operators[op], op); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintf(out, "%d parameters, %.3f GMACs a forward pass of the batch\ntraining: %d ops, needs %v "+
		"without a plan (%v if nothing were freed)\n", d.Params, float64(d.MACs)/1e9, d.Ops, d.PeakLive, d.Peak)
	return err
}

func orUnknown(name string) string {
	if name == "" {
		return "an unknown program"
	}
	return name
}

func onnxTestCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "test DIR",
		Short: "Run single-operator test cases on the CPU and compare with their stored outputs",
		Long: "Run single-operator test cases on the CPU and compare with their stored outputs.\n\nDIR is a test " +
			"case of the ONNX project (a folder with model.onnx and test_data_set_0) or a folder of test cases. " +
			"Unsupported cases are listed; the exit status is 1 if a case fails.",
		Example: "  tensile models onnx test onnx/backend/test/data/node --json",
		Args:    needFile,
		RunE: func(c *cobra.Command, args []string) error {
			return testONNX(c.Context(), args[0], asJSON, c.OutOrStdout())
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print a single JSON document with the results by operator")
	return c
}

func testONNX(ctx context.Context, dir string, asJSON bool, out io.Writer) error {
	d, err := cpu.New(cpu.Options{})
	if err != nil {
		return err
	}
	defer d.Close()
	results, err := onnxcases.Run(ctx, d, dir)
	if err != nil {
		return err
	}
	tallies := onnxcases.Count(results)
	if asJSON {
		err = printJSON(out, tallies)
	} else {
		err = writeCases(out, results, tallies)
	}
	if err != nil {
		return err
	}
	failed := 0
	for _, t := range tallies {
		failed += t.Failed
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d cases have failed", failed, len(results))
	}
	return nil
}

// writeCases lists the cases that did not pass, and counts all by operator.
func writeCases(out io.Writer, results []onnxcases.Result, tallies []onnxcases.Tally) error {
	for _, r := range results {
		if r.Outcome != onnxcases.Passed {
			if _, err := fmt.Fprintf(out, "%s %s: %s\n", r.Name, r.Outcome, r.Reason); err != nil {
				return err
			}
		}
	}
	rows := [][]string{{"OPERATOR", "PASSED", "FAILED", "UNSUPPORTED"}}
	for _, t := range tallies {
		rows = append(rows, []string{t.Op, fmt.Sprint(t.Passed), fmt.Sprint(t.Failed), fmt.Sprint(t.Unsupported)})
	}
	return text.Table(out, rows)
}
