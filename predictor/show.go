package predictor

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// Summary describes a model for people.
type Summary struct {
	Note       string         `json:"note"`
	Parameters int            `json:"parameters"`
	Groups     []GroupSummary `json:"groups"`
	Devices    []string       `json:"devices"` // known by their facts
}

// GroupSummary describes a group.
type GroupSummary struct {
	Form     string   `json:"form"`
	Kinds    []string `json:"kinds"`
	Families []string `json:"families"` // Families of devices in the training set.
	Rows     int      `json:"rows"`
	Features int      `json:"features"`
	Nets     int      `json:"nets"`
	Layers   []int    `json:"layers"` // values after each layer
}

// Summary describes the model.
func (m *Model) Summary() *Summary {
	s := &Summary{Note: m.Note}
	for i := range m.Devices {
		s.Devices = append(s.Devices, m.Devices[i].Name)
	}
	for i := range m.Groups {
		g := &m.Groups[i]
		t := GroupSummary{Form: g.Form.String(), Kinds: g.Kinds, Families: g.Families, Rows: g.Rows,
			Features: len(g.Mean), Nets: len(g.Nets)}
		for n, layers := range g.Nets {
			for _, l := range layers {
				s.Parameters += len(l.W) + len(l.B)
				if n == 0 {
					t.Layers = append(t.Layers, l.Out)
				}
			}
		}
		s.Groups = append(s.Groups, t)
	}
	return s
}

// WriteTable prints the summary.
func (s *Summary) WriteTable(out io.Writer) error {
	if s.Note != "" {
		fmt.Fprintln(out, s.Note)
	}
	fmt.Fprintf(out, "%d parameters; devices %s\n", s.Parameters, strings.Join(s.Devices, ", "))
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "form\trows\tfeatures\tnets\tlayers\ttrained on\tkinds")
	for _, g := range s.Groups {
		fmt.Fprintf(t, "%s\t%d\t%d\t%d\t%v\t%s\t%s\n", g.Form, g.Rows, g.Features, g.Nets, g.Layers,
			strings.Join(g.Families, " "), strings.Join(g.Kinds, " "))
	}
	return t.Flush()
}

// WriteTable prints the evaluation.
func (e *Evaluation) WriteTable(out io.Writer) error {
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "kind\tops\tmean error\tmedian\t95th of 100\t")
	for _, k := range e.Kinds {
		fmt.Fprintf(t, "%s\t%d\t%.3f\t%.3f\t%.3f\t\n", k.Kind, k.N, k.MAPE, k.P50, k.P95)
	}
	fmt.Fprintf(t, "mean\t\t%.3f\t\t\t\n", e.Overall)
	fmt.Fprintf(t, "roofline\t\t%.3f\t\t\t\n", e.Roofline)
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(out)
	fmt.Fprintln(t, "device\ttrained on\tops\tmean error\tin p95\tafter 32 reports\tin p95\t")
	for _, d := range e.Devices {
		seen, corrected := "no", "-\t-"
		if d.Seen {
			seen = "yes"
		}
		if d.Corrected != nil {
			corrected = fmt.Sprintf("%.3f\t%.3f", d.Corrected.MAPE, d.Corrected.Covered)
		}
		fmt.Fprintf(t, "%s\t%s\t%d\t%.3f\t%.3f\t%s\t\n", d.Name, seen, d.N, d.MAPE, d.Covered, corrected)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(out, "\n%.1f %% took no longer than their p95; %.1f %% lie outside of what was trained on\n",
		100*e.Covered, 100*e.Outside)
	return err
}
