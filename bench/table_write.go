package bench

import (
	"encoding/csv"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"tensile/graph"
)

// columns are those of rows, as a person or a spreadsheet reads them: sizes in MiB, like those in the reasons.
var columns = []struct {
	name string
	cell func(*Row) string
}{
	{"model", func(r *Row) string { return r.Model }},
	{"jobs", func(r *Row) string { return strconv.Itoa(r.Jobs) }},
	{"batch", func(r *Row) string { return strconv.Itoa(r.Batch) }},
	{"policy", func(r *Row) string { return r.Policy }},
	{"phase", func(r *Row) string { return r.Phase }},
	{"budget_mib", func(r *Row) string { return mebibytes(r.Budget) }},
	{"passes", func(r *Row) string { return r.Passes }},
	{"msr_all", func(r *Row) string { return fixed(r.MSRAll, 3) }},
	{"msr_live", func(r *Row) string { return fixed(r.MSRLive, 3) }},
	{"eor", func(r *Row) string { return fixed(r.EOR, 3) }},
	{"eor_low", func(r *Row) string { return fixed(r.EORLow, 3) }},
	{"eor_high", func(r *Row) string { return fixed(r.EORHigh, 3) }},
	{"cbr", func(r *Row) string { return fixed(r.CBR, 3) }},
	{"cbr_all", func(r *Row) string { return fixed(r.CBRAll, 3) }},
	{"first_iteration_eor", func(r *Row) string { return fixed(r.FirstEOR, 3) }},
	{"plan_ms", func(r *Row) string { return fixed(r.Plan, 1) }},
	{"peak_mib", func(r *Row) string { return mebibytes(r.Peak) }},
	{"swap_mib", func(r *Row) string { return mebibytes(r.Swap) }},
	{"recompute_ms", func(r *Row) string { return fixed(r.Recompute, 2) }},
	{"paper_msr", func(r *Row) string { return fixed(r.PaperMSR, 3) }},
	{"paper_eor", func(r *Row) string { return fixed(r.PaperEOR, 3) }},
	{"bits", func(r *Row) string { return yesNo(r.Identical) }},
	{"remark", func(r *Row) string { return r.Remark }},
	{"why", func(r *Row) string { return r.Why }},
}

func fixed(v *float64, digits int) string {
	if v == nil {
		return ""
	}
	text := strconv.FormatFloat(*v, 'f', digits, 64)
	if strings.Trim(text, "-0.") == "" { // a negative zero is none
		text = strings.TrimPrefix(text, "-")
	}
	return text
}

func mebibytes(b *graph.Bytes) string {
	if b == nil {
		return ""
	}
	return strconv.FormatFloat(float64(*b)/float64(graph.MiB), 'f', 1, 64)
}

func yesNo(b *bool) string {
	switch {
	case b == nil:
		return ""
	case *b:
		return "identical"
	}
	return "DIFFERENT"
}

// cells are the table's head and lines. Columns of rows that are empty throughout are left out.
func (t *Table) cells() [][]string {
	if t.Free != nil {
		lines := [][]string{t.Free.Columns}
		for _, line := range t.Free.Lines {
			var cells []string
			for _, cell := range line {
				cells = append(cells, free(cell))
			}
			lines = append(lines, cells)
		}
		return lines
	}
	lines := make([][]string, len(t.Rows)+1)
	for _, c := range columns {
		empty := true
		for i := range t.Rows {
			empty = empty && c.cell(&t.Rows[i]) == ""
		}
		if empty {
			continue
		}
		lines[0] = append(lines[0], c.name)
		for i := range t.Rows {
			lines[i+1] = append(lines[i+1], c.cell(&t.Rows[i]))
		}
	}
	return lines
}

func free(cell any) string {
	switch v := cell.(type) {
	case nil:
		return ""
	case float64:
		return strconv.FormatFloat(v, 'g', 4, 64)
	case graph.Bytes:
		return strconv.FormatInt(int64(v), 10)
	}
	return fmt.Sprint(cell)
}

// WriteMarkdown prints the tables for people.
func (t *Tables) WriteMarkdown(w io.Writer) error {
	var b strings.Builder
	for i := range t.Tables {
		table := &t.Tables[i]
		fmt.Fprintf(&b, "## %s: %s\n\n", table.Name, table.Title)
		for _, note := range table.Notes {
			fmt.Fprintf(&b, "* %s\n", note)
		}
		if len(table.Notes) > 0 {
			b.WriteByte('\n')
		}
		lines := table.cells()
		if len(lines) == 1 {
			b.WriteString("Nothing was measured.\n\n")
			continue
		}
		for k, line := range lines {
			for at, cell := range line {
				if cell = strings.ReplaceAll(cell, "|", "\\|"); cell == "" {
					cell = "-"
				}
				line[at] = cell
			}
			fmt.Fprintf(&b, "| %s |\n", strings.Join(line, " | "))
			if k == 0 {
				fmt.Fprintf(&b, "|%s\n", strings.Repeat("---|", len(line)))
			}
		}
		b.WriteByte('\n')
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// WriteCSV writes a file NAME.csv per table into a folder.
func (t *Tables) WriteCSV(dir string) error {
	for i := range t.Tables {
		var b strings.Builder
		w := csv.NewWriter(&b)
		if err := w.WriteAll(t.Tables[i].cells()); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, t.Tables[i].Name+".csv"), []byte(b.String()), 0o666); err != nil {
			return err
		}
	}
	return nil
}
