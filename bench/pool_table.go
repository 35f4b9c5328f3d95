package bench

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// WriteTables prints the report for people.
func (r *PoolReport) WriteTables(w io.Writer) error {
	fmt.Fprintf(w, "height to lower bound, and the ms of packing, per method; each of the %d layouts was checked by "+
		"a sweep over its slots\n", r.Checked)
	if r.LeftOut != "" {
		fmt.Fprintln(w, r.LeftOut)
	}
	for _, table := range []func(io.Writer) error{r.hardTable, r.stepsTable, r.networksTable, r.tightenTable,
		r.costTable} {
		if err := table(w); err != nil {
			return err
		}
	}
	return nil
}

// grid is a table whose columns are as wide as they must be.
type grid struct{ *tabwriter.Writer }

func newGrid(w io.Writer, title string, columns ...string) grid {
	fmt.Fprintf(w, "\n%s\n", title)
	g := grid{tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)}
	g.row(columns)
	return g
}

func (g grid) row(cells []string) { fmt.Fprintln(g, strings.Join(cells, "\t")+"\t") }

// heads are those of the columns of a Packing.
func (r *PoolReport) heads(more ...string) []string {
	h := []string{"instance", "buffers", "lower bound"}
	for _, m := range r.Methods {
		h = append(h, m, "ms")
	}
	return append(h, more...)
}

func (p Packing) cells(more ...string) []string {
	c := []string{p.Instance, fmt.Sprint(p.Buffers), fmt.Sprint(p.LowerBound)}
	for _, m := range p.Methods {
		c = append(c, ratioCell(m.Ratio), timeCell(m.Time))
	}
	return append(c, more...)
}

func ratioCell(v float64) string { return fmt.Sprintf("%.5f", v) }

func timeCell(ms float64) string {
	switch {
	case ms >= 100:
		return fmt.Sprintf("%.0f", ms)
	case ms >= 1:
		return fmt.Sprintf("%.1f", ms)
	}
	return fmt.Sprintf("%.3f", ms)
}

// orDash is a cell for a figure that may not be known.
func orDash(v *float64, cell func(float64) string) string {
	if v == nil {
		return "-"
	}
	return cell(*v)
}

func (r *PoolReport) hardTable(w io.Writer) error {
	if len(r.Hard) == 0 {
		return nil
	}
	title := fmt.Sprintf("hard (capacity: a search of at most %d rounds that ends when it is met; published: "+
		"MiniMalloc's ms to meet it, the ratio of TVM's hill climbing)", r.Rounds)
	g := newGrid(w, title, r.heads("height", "capacity", "met", "ms", "MiniMalloc ms", "TVM")...)
	for _, h := range r.Hard {
		met := map[bool]string{true: "yes", false: "NO"}[h.Met]
		g.row(h.cells(fmt.Sprint(h.Within.Height), fmt.Sprint(h.Capacity), met, timeCell(h.Within.Time),
			orDash(h.MiniMalloc, timeCell), orDash(h.TVMHillClimb, ratioCell)))
	}
	return g.Flush()
}

func (r *PoolReport) stepsTable(w io.Writer) error {
	if len(r.Steps) == 0 {
		return nil
	}
	g := newGrid(w, "training steps", r.heads()...)
	for _, p := range r.Steps {
		g.row(p.cells())
	}
	return g.Flush()
}

func (r *PoolReport) networksTable(w io.Writer) error {
	if len(r.Networks) == 0 {
		return nil
	}
	title := fmt.Sprintf("our networks (batch %d, plans for sim:%s; budgets in percent of the slot peak under "+
		"none-live; spans apart: online, each span a buffer of its own)", networkBatch, networkDevice)
	g := newGrid(w, title, r.heads("spans apart", "ms")...)
	for _, n := range r.Networks {
		if n.Apart != nil {
			g.row(n.cells(ratioCell(n.Apart.Ratio), timeCell(n.Apart.Time)))
		}
	}
	if err := g.Flush(); err != nil {
		return err
	}
	for _, n := range r.Networks {
		if n.Apart == nil {
			fmt.Fprintf(w, "%s: no plan fits into %s, %s needed\n", n.Instance, n.Budget, n.Need)
		}
	}
	return nil
}

func (r *PoolReport) tightenTable(w io.Writer) error {
	if len(r.Tighten) == 0 {
		return nil
	}
	heads := []string{"instance", "budget"}
	for _, m := range tightenMethods {
		heads = append(heads, m, "peak", "ms")
	}
	g := newGrid(w, "rounds of planning and packing until the plan fits (-: no plan does), the plan's slot peak to "+
		"the budget, ms of both, by what packs", heads...)
	for _, t := range r.Tighten {
		cells := []string{t.Instance, fmt.Sprint(t.Budget)}
		for _, m := range t.Methods {
			if m.Rounds == 0 {
				cells = append(cells, "-", "-", "-")
				continue
			}
			cells = append(cells, fmt.Sprint(m.Rounds), fmt.Sprintf("%.4f", float64(m.Peak)/float64(t.Budget)),
				timeCell(m.Time))
		}
		g.row(cells)
	}
	return g.Flush()
}

func (r *PoolReport) costTable(w io.Writer) error {
	if len(r.Cost) == 0 {
		return nil
	}
	g := newGrid(w, "cost against n (search)", "instance", "buffers", "ms", "ms per 1000", "lower bound", "height",
		"ratio")
	for _, c := range r.Cost {
		g.row([]string{c.Instance, fmt.Sprint(c.Buffers), timeCell(c.Time), timeCell(c.PerThousand),
			fmt.Sprint(c.LowerBound), fmt.Sprint(c.Height), ratioCell(c.Ratio)})
	}
	return g.Flush()
}
