package cuda_test

import (
	"strings"
	"testing"

	"tensile/device"
	"tensile/device/cuda"
	"tensile/device/cuda/fakecuda"
	"tensile/device/cuda/kernels"
	"tensile/graph"
	"tensile/graph/cost"
)

// TestRetarget has drivers refuse the text as it stands: it is loaded for the device's own chip. Where that is refused
// as well, or nothing newer fits the chip, the error is the driver's.
func TestRetarget(t *testing.T) {
	for _, test := range []struct {
		card   string
		refuse map[string]cuda.Code
		loads  bool
	}{
		{"a6000", map[string]cuda.Code{"sm_60": cuda.InvalidPTX}, true},
		{"h200", map[string]cuda.Code{"sm_60": cuda.UnsupportedPTX}, true},
		{"h200", map[string]cuda.Code{"sm_60": cuda.NoBinaryForGPU}, true},
		{"h200", map[string]cuda.Code{"sm_60": cuda.InvalidPTX, "sm_90": cuda.InvalidPTX}, false},
		{"a6000", map[string]cuda.Code{"sm_60": cuda.OutOfMemory}, false},
		{"v100", map[string]cuda.Code{"sm_60": cuda.InvalidPTX}, false},
	} {
		facts, err := cost.Device(test.card)
		if err != nil {
			t.Fatal(err)
		}
		driver := fakecuda.New(fakecuda.Options{Facts: facts, Refuse: test.refuse})
		d, err := cuda.New(driver, cuda.Options{})
		if (err == nil) != test.loads {
			t.Errorf("%s, which refuses %v: %v", test.card, test.refuse, err)
		}
		if err != nil {
			if !strings.Contains(err.Error(), "load the kernels of ") || strings.Contains(err.Error(), "left at") {
				t.Errorf("%s: %v", test.card, err)
			}
			continue
		}
		if want := fake(t, 0); d.Identity() != want.Identity() {
			t.Errorf("%s: identity %s, want %s", test.card, d.Identity(), want.Identity())
		}
		if _, err := train(t, d, keepAll(t, d), 1); err != nil {
			t.Errorf("%s: %v", test.card, err)
		}
		closed(t, d)
	}
}

// old is a driver whose device has a compute capability that the kernels do not run on.
type old struct{ cuda.Driver }

func (o old) Devices() ([]cuda.Properties, error) {
	all, err := o.Driver.Devices()
	for i := range all {
		all[i].Major, all[i].Minor = 5, 2
	}
	return all, err
}

func TestTooOld(t *testing.T) {
	_, err := cuda.New(old{fakecuda.New(fakecuda.Options{})}, cuda.Options{})
	const want = "open the cuda device: fake a6000 has compute capability 5.2, the kernels need 6.0: give another GPU"
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// TestRetargetText changes two lines.
func TestRetargetText(t *testing.T) {
	text := kernels.Texts()[0].PTX
	for _, test := range []struct {
		major, minor    int
		version, target string
	}{
		{6, 1, "", ""}, {7, 0, "", ""}, {7, 5, "6.3", "sm_75"}, {8, 0, "7.0", "sm_80"}, {8, 9, "7.0", "sm_80"},
		{9, 0, "7.8", "sm_90"}, {12, 0, "7.8", "sm_90"},
	} {
		got := cuda.Retarget(text, test.major, test.minor)
		if test.version == "" {
			if got != text {
				t.Errorf("sm_%d%d: the text has changed", test.major, test.minor)
			}
			continue
		}
		old, lines := strings.Split(text, "\n"), strings.Split(got, "\n")
		changed := 0
		for i := range old {
			if old[i] != lines[i] {
				changed++
			}
		}
		if changed != 2 || !strings.Contains(got, "\n.version "+test.version+"\n.target "+test.target+"\n") {
			t.Errorf("sm_%d%d: %d lines have changed", test.major, test.minor, changed)
		}
	}
}

// TestFacts compares what a device says of itself with the card that the fake is. The kernels do not run on a k40.
func TestFacts(t *testing.T) {
	for _, name := range cost.Names() {
		want, err := cost.Device(name)
		if err != nil {
			t.Fatal(err)
		}
		want.In.Latency, want.Out.Latency = 9000, 7000
		want.Out.Rate /= 2
		driver := fakecuda.New(fakecuda.Options{Facts: want})
		if name == "k40" {
			_, err := cuda.New(driver, cuda.Options{})
			if err == nil || !strings.Contains(err.Error(), "capability 3.5") {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		d := open(t, driver)
		got := d.Facts()
		near := func(what string, got, want float64) {
			t.Helper()
			if got < 0.98*want || got > 1.02*want {
				t.Errorf("%s: %s is %v, want %v", name, what, got, want)
			}
		}
		near("compute", float64(got.Compute), float64(want.Compute))
		near("bandwidth", float64(got.Bandwidth), float64(want.Bandwidth))
		near("in", float64(got.In.Rate), float64(want.In.Rate))
		near("out", float64(got.Out.Rate), float64(want.Out.Rate))
		near("latency in", float64(got.In.Latency), float64(want.In.Latency))
		near("latency out", float64(got.Out.Latency), float64(want.Out.Latency))
		near("memory", float64(got.Memory), float64(want.Memory))
		closed(t, d)
	}
}

// An op that is too large for the kernels is refused before anything runs.
func TestTooLarge(t *testing.T) {
	d := fake(t, 1)
	defer closed(t, d)
	for columns, fits := range map[int]bool{1 << 30: true, 1<<30 + 4: false} {
		b := graph.NewBuilder("large")
		x := b.Input("x", graph.Anything, graph.Float32, graph.Shape{1, 4})
		w := b.Persistent("w", graph.Parameter, graph.Shape{columns, 4}, graph.Init{})
		b.Output(b.Op("wide", graph.Linear, graph.Attrs{}, x, w)[0])
		g, err := b.Graph()
		if err != nil {
			t.Fatal(err)
		}
		switch err := device.Supports(d, g); {
		case fits && err != nil:
			t.Errorf("%d columns: %v", columns, err)
		case !fits && (err == nil || !strings.Contains(err.Error(), "op wide of large") ||
			strings.Contains(err.Error(), "\n")):
			t.Errorf("%d columns: got error %v", columns, err)
		}
	}
}
