// Package text prints sizes, times and tables the way a person compares them.
package text

import (
	"fmt"
	"io"
	"math"
	"strings"
	"time"
	"unicode/utf8"

	"tensile/graph"
)

// unit is one that amounts are printed in.
type unit struct {
	size graph.Bytes
	name string
}

// units are those of columns, largest first.
var units = []unit{{graph.GiB, "GiB"}, {graph.MiB, "MiB"}, {graph.KiB, "KiB"}}

// level is the index of the unit of an amount.
func level(b graph.Bytes) int {
	for i, u := range units {
		if b >= u.size || -b >= u.size {
			return i
		}
	}
	return len(units) - 1
}

func (u unit) print(b graph.Bytes) string {
	return fmt.Sprintf("%.2f%s", float64(b)/float64(u.size), u.name)
}

// Bytes prints an amount with a binary unit and always two decimals, so that the amounts of a column compare at a
// glance. graph.Bytes.String prints as few digits as it can, for sentences.
func Bytes(b graph.Bytes) string { return units[level(b)].print(b) }

// SameUnit is Bytes for a table that holds these amounts: all are printed in one unit, the largest of which the
// smallest amount but 0 is half at least, or the one below that of the largest amount.
func SameUnit(amounts ...graph.Bytes) func(graph.Bytes) string {
	largest, smallest := len(units)-1, 0
	for _, b := range amounts {
		if b != 0 {
			largest, smallest = min(largest, level(b)), max(smallest, level(2*b))
		}
	}
	return units[min(smallest, largest+1, len(units)-1)].print
}

// Duration rounds to three digits: 1.56s, 76.4ms, 885µs; above 100 s to the second.
func Duration(d time.Duration) time.Duration {
	step := time.Duration(1)
	for limit := time.Duration(1000); d.Abs() >= limit && step < time.Second; limit *= 10 {
		step *= 10
	}
	return d.Round(step)
}

// Percent prints a share of 1 as a percentage: without decimals, or with one below 1 %.
func Percent(share float64) string {
	percent := 100 * share
	digits := 0
	if math.Abs(percent) < 0.95 {
		digits = 1
	}
	text := fmt.Sprintf("%.*f %%", digits, percent)
	if text == "-0.0 %" || text == "0.0 %" {
		return "0 %"
	}
	return text
}

// Table prints rows of cells in columns: the first flush left, the others flush right, two blanks between them and none
// at the end of a line. Rows may be shorter than the first.
func Table(w io.Writer, rows [][]string) error {
	var widths []int
	for _, row := range rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	var lines strings.Builder
	for _, row := range rows {
		var line strings.Builder
		for i, cell := range row {
			blanks := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if i == 0 {
				line.WriteString(cell + blanks)
			} else {
				line.WriteString("  " + blanks + cell)
			}
		}
		lines.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	_, err := io.WriteString(w, lines.String())
	return err
}

// Count is a number of things, of which what is one: 1 job, 2 jobs.
func Count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
