package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"tensile/internal/long"
)

// TestAutoSwap holds the tables to what the paper's text says, where ours agree: VGG16 has the paper's reduction at no
// overhead, with its times; the mixture is not above the least of the four scores; the pool is near the load. All
// tables have lines.
func TestAutoSwap(t *testing.T) {
	long.Only(t)
	tables, err := autoSwap(t.Context(), true)
	if err != nil {
		t.Fatal(err)
	}
	byName := make(map[string]*Table)
	for i := range tables {
		table := &tables[i]
		if len(table.Free.Lines) < 8 {
			t.Errorf("%s has %d lines", table.Name, len(table.Free.Lines))
		}
		byName[table.Name] = table
	}
	cell := func(table string, line []any, column string) any {
		return line[slices.Index(byName[table].Free.Columns, column)]
	}
	found := 0
	for _, line := range byName["autoswap-table-2"].Free.Lines {
		less := cell("autoswap-table-2", line, "reduction_percent").(float64)
		if cell("autoswap-table-2", line, "paper") == "VGG16" &&
			cell("autoswap-table-2", line, "device") == "paper's times" {
			found++
			if less < 30.9 || less > 40 {
				t.Errorf("%v: the paper has 30.9 %%", line)
			}
		}
		if less < 15 || less > 50 {
			t.Errorf("%v", line)
		}
	}
	for _, line := range byName["autoswap-figure-9"].Free.Lines {
		get := func(column string) float64 { return cell("autoswap-figure-9", line, column).(float64) }
		least := min(get("doa"), get("aoa"), get("wdoa"), get("swdoa"))
		if get("bo") > least || cell("autoswap-figure-9", line, "bo_at_most_least") != true {
			t.Errorf("%v: the mixture is above the least", line)
		}
		if cell("autoswap-figure-9", line, "device") == "paper's times" {
			switch found++; get("limit_percent") {
			case 69.1:
				if get("bo") > 0 {
					t.Errorf("%v: the paper has no overhead", line)
				}
			case 43.3:
				if get("bo") >= 20 {
					t.Errorf("%v: the paper has less than 20 %%", line)
				}
			}
		}
	}
	for _, line := range byName["autoswap-figure-10"].Free.Lines {
		if cell("autoswap-figure-10", line, "overhead_percent").(float64) > 0.1 {
			t.Errorf("%v: as executed it has an overhead", line)
		}
	}
	for _, line := range byName["smartpool-table-1"].Free.Lines {
		if r := cell("smartpool-table-1", line, "smartpool_ratio").(float64); r < 1 || r > 1.05 {
			t.Errorf("%v: the paper's worst ratio is 1.016", line)
		}
	}
	if found < 5 {
		t.Errorf("%d lines with the paper's times", found)
	}
}

// The tables can be stopped.
func TestAutoSwapStops(t *testing.T) {
	stopped := fmt.Errorf("stopped")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(stopped)
	if _, err := autoSwap(ctx, true); !errors.Is(err, stopped) {
		t.Errorf("got %v, want %v", err, stopped)
	}
}
