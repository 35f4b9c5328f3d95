package main

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"tensile/bench"
	"tensile/device/cpu"
)

// sharingFlags are those of the tables of papers on jobs that share memory.
type sharingFlags struct {
	tables []string
	csv    string
	cpu    bool
}

const allTables = "all"

func (f *sharingFlags) register(c *cobra.Command) {
	c.Flags().StringSliceVar(&f.tables, "papers", nil,
		"reproduce the papers' tables and figures: all, or the given ones")
	c.Flags().Lookup("papers").NoOptDefVal = allTables
	complete(c, "papers", append(bench.SharingTables(), allTables)...)
	c.Flags().BoolVar(&f.cpu, "cpu", false,
		"train copies of a small network on the CPU with every kind of memory sharing")
	c.Flags().StringVar(&f.csv, "csv", "", "with --papers: also write the rows of all tables to this file")
}

// run fills the tables and prints them.
func (f *sharingFlags) run(c *cobra.Command, quick bool, iterations int, json bool, svg string) error {
	if len(f.tables) == 0 {
		return fmt.Errorf("--papers: give %s, or some of %s", allTables, strings.Join(bench.SharingTables(), ", "))
	}
	o := bench.SharingOptions{Tables: f.tables, Quick: quick, Iterations: iterations}
	if slices.Contains(o.Tables, allTables) {
		o.Tables = nil
	}
	for _, name := range o.Tables {
		if !slices.Contains(bench.SharingTables(), name) {
			return fmt.Errorf("--papers %s: known are %s, %s", name, allTables,
				strings.Join(bench.SharingTables(), ", "))
		}
	}
	if quick && !c.Flags().Changed("iterations") {
		o.Iterations = 8
	}
	progress, end := timeLeft(c.ErrOrStderr())
	if progress != nil {
		o.Progress = func(done, of int) { progress(float64(done) / float64(of)) }
	}
	r, err := bench.MeasureSharing(c.Context(), o)
	end()
	if err != nil {
		return err
	}
	if f.csv != "" {
		var rows bytes.Buffer
		if err := r.WriteCSV(&rows); err != nil {
			return fmt.Errorf("--csv: %w", err)
		}
		if err := os.WriteFile(f.csv, rows.Bytes(), 0o666); err != nil {
			return fmt.Errorf("--csv: %w", err)
		}
	}
	if svg != "" {
		for _, name := range r.Drawings() {
			var drawing bytes.Buffer
			r.Draw(&drawing, name)
			path := fmt.Sprintf("%s-%s.svg", strings.TrimSuffix(svg, ".svg"), name)
			if err := os.WriteFile(path, drawing.Bytes(), 0o666); err != nil {
				return fmt.Errorf("--svg: %w", err)
			}
		}
	}
	return printShare(c.OutOrStdout(), r, json, nil)
}

// real trains copies on the cpu and prints what they took.
func (f *sharingFlags) real(c *cobra.Command, quick, json bool) error {
	d, err := cpu.New(cpu.Options{})
	if err != nil {
		return err
	}
	defer d.Close()
	o := bench.RealSharing(quick)
	var end func()
	o.Progress, end = timeLeft(c.ErrOrStderr())
	r, err := bench.MeasureRealSharing(c.Context(), d, o)
	end()
	return printShare(c.OutOrStdout(), r, json, err)
}
