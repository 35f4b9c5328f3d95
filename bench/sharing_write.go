package bench

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"io"
	"strings"

	"tensile/graph"
	"tensile/observe/report"
)

// sharingColumns are those of rows, as a person or a spreadsheet reads them: sizes in MB, of 1e6 bytes.
var sharingColumns = []struct {
	name  string
	cell  func(*SharingRow) string
	wide  bool // in CSV alone
	right bool
}{
	{name: "figure", cell: func(r *SharingRow) string { return r.Figure }},
	{name: "device", cell: func(r *SharingRow) string { return r.Device }, wide: true},
	{name: "jobs", cell: func(r *SharingRow) string { return r.Jobs }},
	{name: "batch", cell: func(r *SharingRow) string { return r.Batch }},
	{name: "sharing", cell: func(r *SharingRow) string { return r.Sharing }},
	{name: "capacity_mb", cell: func(r *SharingRow) string { return bytesOrEmpty(r.Capacity) }, right: true},
	{name: "demand", cell: func(r *SharingRow) string { return positive(r.Demand) }, right: true},
	{name: "least_mb", cell: func(r *SharingRow) string { return bytesOrEmpty(r.Least) }, wide: true},
	{name: "held_mb", cell: func(r *SharingRow) string { return bytesOrEmpty(r.Touched) }, right: true},
	{name: "gate_ms", cell: func(r *SharingRow) string { return fixed(&r.Gate, 2) }, wide: true},
	{name: "vs_mps", cell: func(r *SharingRow) string { return positive(r.MPS) }, right: true},
	{name: "vs_spatial", cell: func(r *SharingRow) string { return positive(r.Spatial) }, right: true},
	{name: "measure", cell: func(r *SharingRow) string { return r.Measure }},
	{name: "value", cell: func(r *SharingRow) string { return fixed(&r.Value, 3) }, right: true},
	{name: "gates", cell: func(r *SharingRow) string { return fixed(r.Gates, 3) }, right: true},
	{name: "paper", cell: func(r *SharingRow) string { return fixed(r.Paper, 3) }, right: true},
}

func bytesOrEmpty(b graph.Bytes) string {
	if b == 0 {
		return ""
	}
	mb := inMB(b)
	return fixed(&mb, 1)
}

func positive(v float64) string {
	if v == 0 {
		return ""
	}
	return fixed(&v, 3)
}

// WriteTable prints the tables in Markdown, each with what its paper says of it below.
func (r *SharingReport) WriteTable(w io.Writer) error {
	var b bytes.Buffer
	b.WriteString("Virtual time: a model of each device, not the device. Throughput is the work of all jobs " +
		"together; 1 is one\njob after the other, iteration by iteration, without a pause. Demand is what the " +
		"jobs' arenas are together, of the\ncapacity. Gates has the value of the same jobs by gates, paper what " +
		"its text gives.\n")
	for _, t := range r.Tables {
		fmt.Fprintf(&b, "\n## %s\n\n%s.\n\n", t.Name, t.What)
		var head, line []string
		for _, c := range sharingColumns {
			if c.wide {
				continue
			}
			head = append(head, strings.ReplaceAll(c.name, "_", " "))
			line = append(line, map[bool]string{false: "---", true: "---:"}[c.right])
		}
		fmt.Fprintf(&b, "| %s |\n| %s |\n", strings.Join(head, " | "), strings.Join(line, " | "))
		for i := range t.Rows {
			var cells []string
			for _, c := range sharingColumns {
				if !c.wide {
					cells = append(cells, c.cell(&t.Rows[i]))
				}
			}
			fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | "))
		}
		if len(t.Signs) > 0 {
			b.WriteString("\nWhat the paper says, and whether it is so here:\n\n")
		}
		for _, s := range t.Signs {
			why := ""
			if s.Why != "" {
				why = " (" + s.Why + ")"
			}
			holds := map[bool]string{true: "yes", false: "no"}[s.Holds]
			fmt.Fprintf(&b, "* **%s**: %s; %s%s\n", holds, s.Claim, s.Got, why)
		}
	}
	_, err := w.Write(b.Bytes())
	return err
}

// WriteCSV prints the rows of all tables.
func (r *SharingReport) WriteCSV(w io.Writer) error {
	c := csv.NewWriter(w)
	var head []string
	for _, col := range sharingColumns {
		head = append(head, col.name)
	}
	c.Write(head)
	for _, t := range r.Tables {
		for i := range t.Rows {
			var cells []string
			for _, col := range sharingColumns {
				cells = append(cells, col.cell(&t.Rows[i]))
			}
			c.Write(cells)
		}
	}
	c.Flush()
	return c.Error()
}

// Drawings returns the names of the figures that there are, in order.
func (r *SharingReport) Drawings() (names []string) {
	for _, t := range r.Tables {
		for _, c := range t.Drawing {
			if len(names) == 0 || names[len(names)-1] != c.Name {
				names = append(names, c.Name)
			}
		}
	}
	return names
}

// Draw writes an SVG of a figure: the memory over time, a panel for each way to share.
func (r *SharingReport) Draw(w io.Writer, figure string) {
	var panels []report.SharingPanel
	for _, t := range r.Tables {
		for _, c := range t.Drawing {
			if c.Name == figure {
				panels = append(panels, c.Panel)
			}
		}
	}
	report.DrawSharing(w, figure, panels)
}
