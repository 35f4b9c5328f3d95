package bench

import (
	"bytes"
	"strings"
	"testing"

	"tensile/cost"
	"tensile/workload"
)

// Two jobs under gates train in the least memory at least as fast as one after the other, and faster with more; what is
// held is never more than the capacity.
func TestShare(t *testing.T) {
	f, err := cost.Device("a6000")
	if err != nil {
		t.Fatal(err)
	}
	r, err := MeasureShare(t.Context(), ShareOptions{Facts: f, Iterations: 12, Sets: []ShareSet{
		{Jobs: []string{"resnet50:2"}, Settings: workload.Settings{Batch: 16}, Percent: []int{100, 130}}}})
	if err != nil {
		t.Fatal(err)
	}
	var table bytes.Buffer
	if err := r.WriteTable(&table); err != nil || strings.Count(table.String(), "\n") != 6 {
		t.Errorf("error %v, table\n%s", err, &table)
	}
	for i, want := range []struct {
		sharing     string
		alternating float64 // at least
		touched     float64 // of the capacity, at least
	}{{"none", 1.02, 1}, {"slices", .8, .99}, {"gates", 1.0, .99}, {"gates", 1.04, .9}} {
		row := r.Rows[i]
		if touched := float64(row.Touched) / float64(row.Capacity); row.Sharing != want.sharing ||
			row.Alternating < want.alternating || touched < want.touched || touched > 1 {
			t.Errorf("row %d: %+v, want %+v", i, row, want)
		}
		if gates := row.Sharing == "gates"; gates && row.Capacity >= r.Rows[0].Capacity || gates != (row.Gate > 0) {
			t.Errorf("row %d: %+v beside %+v", i, row, r.Rows[0])
		}
	}
	t.Logf("\n%s", &table)
}
