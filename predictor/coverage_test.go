package predictor

import (
	"path/filepath"
	"testing"

	"tensile/internal/long"
	"tensile/internal/needs"
)

// measuredRows are every so manieth of the measured ops of some kinds, and the devices.
func measuredRows(t *testing.T, every int, files ...string) ([]Sample, []Device) {
	t.Helper()
	dir := needs.Data(t, "neusight")
	devices, err := ReadDevices(filepath.Join(dir, "device_configs"))
	if err != nil {
		t.Fatal(err)
	}
	var some []Sample
	for _, file := range files {
		samples, err := ReadSamples(filepath.Join(dir, "ops", file), devices)
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i < len(samples); i += every {
			some = append(some, samples[i])
		}
	}
	return some, devices
}

// A family of devices is left out of training. Without any report at least nine of ten of its ops take no longer than
// their p95; after 32 of its ops, drawn at random, were reported, 93 to 97 of a hundred, and the error is smaller.
func TestCoverage(t *testing.T) {
	long.Only(t)
	samples, devices := measuredRows(t, 12, "train_linear.csv", "train_bmm.csv", "train_vec.csv")
	for _, family := range []string{"A100", "P100", "T4", "V100"} {
		train, test := SplitFamily(samples, devices, family)
		m, err := Train(train, devices, Options{Effort: 0.02, Hidden: []int{48, 48, 48}, Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		e := Evaluate(m, test)
		for _, d := range e.Devices {
			t.Logf("%s: %d ops, error %.3f, %.3f within p95; after reports %.3f, %.3f", d.Name, d.N, d.MAPE, d.Covered,
				d.Corrected.MAPE, d.Corrected.Covered)
			if d.Seen || d.Covered < 0.9 {
				t.Errorf("%s: %.3f took no longer than their p95", d.Name, d.Covered)
			}
			if c := d.Corrected; c.Covered < 0.93 || c.Covered > 0.97 || c.MAPE > d.MAPE {
				t.Errorf("%s: after reports %.3f took no longer than their p95, the error is %.3f, it was %.3f", d.Name,
					c.Covered, c.MAPE, d.MAPE)
			}
		}
		var all, n float64
		for _, c := range e.Cells {
			if c.Corrected != nil {
				t.Logf("  %-8s %5d ops, error %.3f, %.3f within p95; after reports %.3f, %.3f", c.Kind, c.N, c.MAPE,
					c.Covered, c.Corrected.MAPE, c.Corrected.Covered)
				all, n = all+c.Corrected.Covered, n+1
				if c.Corrected.Covered < 0.92 || c.Corrected.Covered > 0.98 {
					t.Errorf("%s on %s: after reports %.3f took no longer than their p95", c.Kind, c.Device,
						c.Corrected.Covered)
				}
			}
		}
		if n == 0 || all/n < 0.93 || all/n > 0.97 {
			t.Errorf("%s: the mean over %v kinds after reports is %.3f", family, n, all/n)
		}
	}
}
