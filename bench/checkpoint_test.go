package bench

import (
	"testing"

	"tensile/cost"
	"tensile/device/cpu"
	"tensile/device/sim"
	"tensile/workload"
)

// Checkpoints are taken in both ways. In virtual time the one that is taken while the job trains costs what was
// predicted; on a device with data files are written.
func TestMeasureCheckpoints(t *testing.T) {
	facts, err := cost.Device("a6000")
	if err != nil {
		t.Fatal(err)
	}
	o := CheckpointOptions{Networks: []string{"lenet"}, Settings: workload.Settings{Image: 12, Batch: 2},
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
	d, err := cpu.New(cpu.Options{NoOpenBLAS: true})
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
