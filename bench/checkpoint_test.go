package bench

import (
	"slices"
	"strings"
	"testing"

	"tensile/device/cpu"
	"tensile/device/sim"
	"tensile/graph/cost"
	"tensile/models/task"
)

// Where no checkpoint could be compared with iterations without one the table has no numbers.
func TestCheckpointTable(t *testing.T) {
	r := CheckpointReport{Device: "cpu", Rows: []CheckpointRow{
		{Model: "lenet", Budget: 70, Way: "aside", Taken: 2, Predicted: 1.5},
		{Model: "lenet", Budget: 70, Way: "home", File: true, Taken: 2, Without: 3, While: 4, Cost: 5, Write: 6,
			Share: 0.01}}}
	var text strings.Builder
	if err := r.WriteTable(&text); err != nil {
		t.Fatal(err)
	}
	var ends []string
	for line := range strings.Lines(text.String()) {
		fields := strings.Fields(line)
		ends = append(ends, strings.Join(fields[max(0, len(fields)-6):], " "))
	}
	if want := []string{"- - - 1.50 - -", "3.00 4.00 5.00 0.00 6 1.0000%"}; !slices.Equal(ends[2:], want) {
		t.Errorf("rows end with %q, want %q", ends[2:], want)
	}
}

// Checkpoints are taken in both ways. In virtual time the one that is taken while the job trains costs what was
// predicted; on a device with data files are written.
func TestMeasureCheckpoints(t *testing.T) {
	facts, err := cost.Device("a6000")
	if err != nil {
		t.Fatal(err)
	}
	o := CheckpointOptions{Networks: []string{"lenet"}, Settings: task.Settings{Image: 12, Batch: 2},
		Budgets: []int{100, 70}, Every: 12, Times: 2, Dir: t.TempDir()}
	r, err := MeasureCheckpoints(t.Context(), sim.New(facts, sim.Options{}), o)
	if err != nil {
		t.Fatal(err)
	}
	ways := map[string]int{}
	for _, row := range r.Rows {
		ways[row.Way]++
		if row.Taken < o.Times || row.Bytes <= 0 || row.Without <= 0 || row.File {
			t.Errorf("%+v", row)
		}
		if row.Way == "aside" && row.Cost != row.Predicted || row.Way == "home" && row.Cost <= 0 {
			t.Errorf("a checkpoint costs %v ms, predicted were %v: %+v", row.Cost, row.Predicted, row)
		}
	}
	if ways["aside"] != 2 || ways["home"] != 2 {
		t.Errorf("rows by way: %v", ways)
	}
	d, err := cpu.New(cpu.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if r, err = MeasureCheckpoints(t.Context(), d, o); err != nil {
		t.Fatal(err)
	}
	files := 0
	for _, row := range r.Rows {
		if row.File && row.Taken > 0 {
			files++
		}
	}
	if files == 0 || files != len(r.Rows)/2 {
		t.Errorf("%d of %d rows have files", files, len(r.Rows))
	}
}
