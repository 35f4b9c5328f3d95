package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tensile/device/cuda"
	"tensile/graph"
	"tensile/graph/text"
)

func ratesCommand() *cobra.Command {
	var f planFlags
	var asJSON bool
	c := &cobra.Command{
		Use:   "rates",
		Short: "Measure copy and compute rates of a GPU, alone and overlapped",
		Long: `Measure, with the GPU's own events, copies of pinned memory in each direction and in both at once, before
and after the other measurements; products of random square matrices; and copies and products at the same
time. The GPU is kept busy with products for two seconds first so that its clocks rise. The fastest of
five runs counts; for copies alone and products alone the median is shown too.`,
		Example: "  tensile debug rates --device cuda",
		Args:    noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			return f.rates(c.OutOrStdout(), asJSON)
		},
	}
	f.registerGPU(c)
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON instead of tables")
	return c
}

// registerGPU registers the flags of what only a GPU can do.
func (f *planFlags) registerGPU(c *cobra.Command) {
	c.Flags().StringVar(&f.device, "device", "cuda", "cuda or cuda:N, where N is the number of the GPU, starting at 0")
	c.Flags().BoolVar(&f.fake, "fake", false, "emulate a GPU")
	c.Flags().MarkHidden("fake")
}

// mustBeGPU returns an error unless --device names a GPU.
func (f *planFlags) mustBeGPU() error {
	if kind, _, _ := strings.Cut(f.device, ":"); kind != "cuda" {
		return fmt.Errorf("--device %s: only a GPU is looked into so: give cuda, or cuda:N", f.device)
	}
	return nil
}

// rates measures the device and prints what it found. On a driver without a GPU it takes small matrices.
func (f *planFlags) rates(out io.Writer, asJSON bool) error {
	if err := f.mustBeGPU(); err != nil {
		return err
	}
	d, err := openCUDA(f)
	if err != nil {
		return err
	}
	defer d.Close()
	sizes := []graph.Bytes{64 * graph.KiB, graph.MiB, 16 * graph.MiB, 256 * graph.MiB}
	sides := []int{512, 1024, 2048, 4096, 8192}
	warm := 2 * time.Second
	if f.fake {
		sizes, sides, warm = sizes[:2], []int{32, 64}, 0
	}
	r, err := d.Rates(sizes, sides, warm)
	if err != nil {
		return err
	}
	if asJSON {
		return f.printJSON(out, struct {
			Device string `json:"device"`
			cuda.Rates
		}{d.Name(), r})
	}
	fmt.Fprintf(out, "device %s\n", d.Name())
	return errors.Join(text.Table(out, ratesTable(&r)), text.Table(out, overlapTable(&r.Overlap)), f.notReal(out))
}

// ratesTable has a line per size of copies and products.
func ratesTable(r *cuda.Rates) [][]string {
	perSecond := func(amount float64, took time.Duration) string {
		return fmt.Sprintf("%.3g", amount/max(1, float64(took)))
	}
	var table [][]string
	copies := func(head string, all []cuda.CopyRate) {
		table = append(table, []string{head, "OUT GB/s", "MEDIAN", "IN GB/s", "MEDIAN", "OUT BESIDE IN",
			"IN BESIDE OUT"})
		for _, c := range all {
			b := float64(c.Bytes)
			table = append(table, []string{c.Bytes.String(), perSecond(b, c.Out.Best), perSecond(b, c.Out.Median),
				perSecond(b, c.In.Best), perSecond(b, c.In.Median), perSecond(b, c.BothOut.Best),
				perSecond(b, c.BothIn.Best)})
		}
	}
	copies("COPY OF", r.Copies)
	table = append(table, []string{"PRODUCT OF", "TFLOP/s", "MEDIAN", "", "", "", ""})
	for _, p := range r.Products {
		n := float64(p.Side)
		operations := 2 * n * n * n / 1e3
		table = append(table, []string{fmt.Sprintf("%d x %[1]d", p.Side), perSecond(operations, p.Took.Best),
			perSecond(operations, p.Took.Median), "", "", "", ""})
	}
	copies("AFTER THAT", r.CopiesAfter)
	return table
}

// overlapTable says what copies beside a product cost.
func overlapTable(o *cuda.Overlap) [][]string {
	return [][]string{
		{"BESIDE EACH OTHER", "PRODUCT", "COPIES", "BOTH", "HIDDEN"},
		{fmt.Sprintf("%d x %[1]d, %s each way", o.Side, o.Bytes), o.Product.Best.String(), o.Copies.Best.String(),
			o.Together.Best.String(), text.Percent(o.Hidden())},
	}
}
