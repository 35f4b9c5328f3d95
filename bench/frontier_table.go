package bench

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// frontierMark is a line of the table that was not measured now: MSR over all tensors within the limits, 0: not given.
type frontierMark struct {
	name   string
	within [len(frontierLimits)]float64
	cbr    float64
	more   string
}

// frontierMarks are the goals for the five networks that the TENSILE paper trains, with a batch of 16 and Adam on an
// A6000, that paper's own figures, and those of an earlier state of policy tensile.
var frontierMarks = map[string][]frontierMark{
	"vgg16": {
		{"before", [5]float64{.508, .590, .646, .666, .680}, .62, ""},
		{"goal", [5]float64{.56, 0, .74, .75, 0}, .70, ""},
		{"goal, all passes", [5]float64{.69, 0, .76, .77, 0}, .72, ""},
		{"TENSILE paper", [5]float64{}, .164, ".267 at 1.63"}},
	"inceptionv3": {
		{"before", [5]float64{.656, .704, .783, .883, .908}, .81, ""},
		{"goal", [5]float64{.68, 0, .82, .92, 0}, .83, ""},
		{"goal, all passes", [5]float64{.785, 0, .91, .94, 0}, .86, ""},
		{"TENSILE paper", [5]float64{}, .265, ".436 at 1.65"}},
	"inceptionv4": {
		{"before", [5]float64{.685, .734, .824, .935, .943}, .85, ""},
		{"goal", [5]float64{.71, 0, .85, .95, 0}, .86, ""},
		{"goal, all passes", [5]float64{.80, 0, .935, .965, 0}, .89, ""},
		{"TENSILE paper", [5]float64{}, .361, ".515 at 1.43"}},
	"resnet50": {
		{"before", [5]float64{.659, .711, .781, .838, .892}, .79, ""},
		{"goal", [5]float64{.67, 0, .81, .91, 0}, .82, ""},
		{"goal, all passes", [5]float64{.775, 0, .89, .935, 0}, .85, ""},
		{"TENSILE paper", [5]float64{}, .274, ".426 at 1.55"}},
	"densenet121": {
		{"before", [5]float64{.640, .670, .728, .803, .874}, .78, ""},
		{"goal", [5]float64{.64, 0, .74, .84, 0}, .79, ""},
		{"goal, all passes", [5]float64{.775, 0, .87, .955, 0}, .87, ""},
		{"TENSILE paper", [5]float64{}, .440, ".514 at 1.17"}},
}

// marked reports whether the marks are for a setting.
func marked(s FrontierSetting) bool {
	return s.Batch == 16 && s.Optimizer == "adam" && s.Device == "a6000" && s.Link == 0
}

// WriteTables prints the report for people.
func (r *FrontierReport) WriteTables(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(t, "least arena in MB, and MSR over all tensors, with EOR up to\nmodel\tpolicy\tpasses\t")
	for _, limit := range frontierLimits {
		fmt.Fprintf(t, "%.3f\t\t", limit)
	}
	fmt.Fprintln(t, "best CBR\tlowest\tEOR\t")
	for i, line := range r.Table {
		fmt.Fprintf(t, "%s\t%s\t%s\t", line.title(), line.Policy, line.Passes)
		for _, p := range line.Within {
			if p.Arena == 0 {
				fmt.Fprint(t, "-\t\t")
				continue
			}
			fmt.Fprintf(t, "%.0f\t%.3f\t", float64(p.Arena)/1e6, p.MSRAll)
		}
		fmt.Fprintf(t, "%.3f\t%.0f\t%.3f\t\n", line.CBRAll, float64(line.Lowest.Arena)/1e6, line.Lowest.EOR)
		last := i+1 == len(r.Table) || r.Table[i+1].title() != line.title() // passes may differ
		if !last || !marked(line.FrontierSetting) {
			continue
		}
		for _, m := range frontierMarks[line.Model] {
			fmt.Fprintf(t, "%s\t%s\t\t", line.Model, m.name)
			for _, msr := range m.within {
				if msr == 0 {
					fmt.Fprint(t, "\t\t")
				} else {
					fmt.Fprintf(t, "\t%.3f\t", msr)
				}
			}
			fmt.Fprintf(t, "%.3f\t%s\t\t\n", m.cbr, m.more)
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if !r.Sweep {
		return nil
	}
	fmt.Fprintf(w, "\n%d violations: less memory that takes less time (faster), or more than a step (cliff), "+
		"or has no plan (refused)\n", len(r.Violations))
	for _, v := range r.Violations {
		fmt.Fprintf(w, "%s\t%s by %.4f at EOR %.4f: %s\n", v.title(), v.What, v.By, v.EOR, v.Commands[1])
		if v.Commands[0] != "" {
			fmt.Fprintf(w, "\tafter %s\n", v.Commands[0])
		}
	}
	return nil
}

// title names a setting by what is not usual about it.
func (s *FrontierSetting) title() string {
	text := s.Model
	if s.Batch != 16 {
		text += fmt.Sprintf(" b%d", s.Batch)
	}
	if s.Optimizer != "adam" {
		text += " " + s.Optimizer
	}
	if s.Device != "a6000" {
		text += " " + s.Device
	}
	if s.Link > 0 {
		text += fmt.Sprintf(" %.0fGB/s", float64(s.Link)/1e9)
	}
	return text
}
