package bench

import (
	"bytes"
	"strings"
	"testing"

	"tensile/device/cpu"
	"tensile/models/task"
)

// Two copies on the cpu end in every way to share with the bits of each alone.
func TestRealSharing(t *testing.T) {
	d, err := cpu.New(cpu.Options{Page: 16 << 10})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	r, err := MeasureRealSharing(t.Context(), d, RealSharingOptions{Network: "lenet", Copies: []int{2}, Iterations: 3,
		Rounds: 1, Settings: task.Settings{Batch: 2}})
	if err != nil {
		t.Fatal(err)
	}
	var table bytes.Buffer
	if err := r.WriteTable(&table); err != nil || strings.Count(table.String(), "\n") != 2+len(realWays) {
		t.Errorf("error %v, table\n%s", err, &table)
	}
	for i, row := range r.Rows {
		shares := row.Sharing != ownArenas
		if row.Sharing != realWays[i] || !row.Identical || row.Alternating[0] <= 0 ||
			shares != (row.Capacity < row.Arenas) {
			t.Errorf("row %d: %+v", i, row)
		}
	}
	t.Logf("\n%s", &table)
}
