package predictor

import (
	"compress/gzip"
	"encoding/json"
	"math"
	"os"
	"testing"
	"time"
)

// recorded are ops that tensile device calibrate measured on two processors beside other work:
// testdata/cpu-load.json.gz, the kinds batch_norm, linear and relu of its samples.
func recorded(t *testing.T) []Sample {
	t.Helper()
	f, err := os.Open("testdata/cpu-load.json.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var samples []Sample
	if err := json.NewDecoder(z).Decode(&samples); err != nil {
		t.Fatal(err)
	}
	return samples
}

// A model of what was measured under load predicts that ops take longer the more the machine is loaded, about as much
// as was measured: both against the prediction for a machine that nobody else uses.
func TestLoadAsMeasured(t *testing.T) {
	samples := recorded(t)
	devices := []Device{{Name: "cpu", FLOPs: 12e9, Bandwidth: 20e9, Units: 2, Clock: 1e9, Cache: 1 << 20,
		Launch: 4 * time.Microsecond}}
	m, err := Train(samples, devices, Options{Effort: 0.04, Hidden: []int{32, 32, 32}})
	if err != nil {
		t.Fatal(err)
	}
	limits := [4]float64{0, 0.15, 0.45, 1.01}
	var measured, predicted, n [3]float64
	for _, s := range samples {
		bin := 0
		for s.Load >= limits[bin+1] {
			bin++
		}
		alone := s.Call
		alone.Load = 0
		p := m.Predict(&devices[0], []Call{alone, s.Call})
		measured[bin] += math.Log(s.Seconds / p[0].P50.Seconds())
		predicted[bin] += math.Log(p[1].P50.Seconds() / p[0].P50.Seconds())
		n[bin]++
	}
	for bin := range n {
		measured[bin], predicted[bin] = measured[bin]/n[bin], predicted[bin]/n[bin]
		t.Logf("load %v to %v: %v ops, times e^%.2f measured, e^%.2f predicted", limits[bin], limits[bin+1], n[bin],
			measured[bin], predicted[bin])
		if bin > 0 && (measured[bin] <= measured[bin-1] || predicted[bin] <= predicted[bin-1]) {
			t.Errorf("latency does not rise with load: measured %.3f, predicted %.3f", measured, predicted)
		}
		if math.Abs(measured[bin]-predicted[bin]) > 0.15 {
			t.Errorf("under a load from %v the prediction is off by e^%.2f", limits[bin], predicted[bin]-measured[bin])
		}
	}
}

// A model knows of a load that it was trained under, and of no other; one that was trained on an idle machine alone, or
// that does not know a kind, knows of none.
func TestKnowsLoad(t *testing.T) {
	samples := recorded(t)
	devices := []Device{{Name: "cpu", FLOPs: 12e9, Bandwidth: 20e9, Units: 2, Clock: 1e9, Cache: 1 << 20,
		Launch: 4 * time.Microsecond}}
	for _, c := range []struct {
		trained, asked float64
		want           bool
	}{
		{0, 0, false}, {0, 1, false}, {0.04, 0.02, false}, {0.5, 0.5, true}, {0.5, 0, true}, {0.5, 0.55, true},
		{0.5, 1, false}, {1, 1, true},
	} {
		of := append([]Sample(nil), samples...)
		for i := range of {
			of[i].Load = c.trained * float64(i%2)
		}
		m, err := Train(of, devices, Options{Effort: 0.001, Hidden: []int{4}})
		if err != nil {
			t.Fatal(err)
		}
		call := of[0].Call
		if call.Load = c.asked; m.KnowsLoad(&call) != c.want {
			t.Errorf("trained up to a load of %v it knows of %v: %t, want %t", c.trained, c.asked, !c.want, c.want)
		}
		if call.Form, call.Kind = Conv, "conv2d"; m.KnowsLoad(&call) {
			t.Error("it knows of load what a kind takes that it was not trained on")
		}
	}
}
