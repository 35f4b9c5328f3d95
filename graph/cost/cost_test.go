package cost

import (
	"math"
	"slices"
	"testing"
	"time"

	"tensile/graph"
	_ "tensile/internal/long" // the flag -long
)

func TestLinkTime(t *testing.T) {
	for _, test := range []struct {
		link  Link
		bytes graph.Bytes
		want  time.Duration
	}{
		{Link{}, 1 << 40, 0},
		{Link{Latency: 7}, 1 << 40, 7},
		{Link{Rate: 1e9}, 1000, 1000},
		{Link{Rate: 24e9}, 24e9, time.Second},
		{Link{Rate: 12e9, Latency: 10 * time.Microsecond}, 12e6, 1010 * time.Microsecond},
		{Link{Rate: 1e9, Latency: 5}, 0, 5},
		{Link{Rate: 0.5}, 3, 6 * time.Second},
		{Link{Rate: 1e-300, Latency: 5}, 1 << 40, 24*time.Hour + 5},
	} {
		if got := test.link.Time(test.bytes); got != test.want {
			t.Errorf("%+v takes %v for %d bytes, want %v", test.link, got, test.bytes, test.want)
		}
	}
}

func TestLinkShare(t *testing.T) {
	l := Link{Rate: 24e9, Latency: 3}
	for _, test := range []struct {
		part, whole int64
		want        Link
	}{
		{1, 1, l}, {720720, 720720, l}, {1, 2, Link{12e9, 3}}, {180180, 720720, Link{6e9, 3}}, {3, 4, Link{18e9, 3}},
		{240240, 720720, Link{8e9, 3}}, // a third to the last bit
	} {
		if got := l.Share(test.part, test.whole); got != test.want {
			t.Errorf("%d of %d parts are %+v, want %+v", test.part, test.whole, got, test.want)
		}
	}
	if got := (Link{}).Share(1, 3).Time(1 << 30); got != 0 {
		t.Errorf("a share of an unlimited link takes %v", got)
	}
}

func TestRoofline(t *testing.T) {
	f := Facts{Compute: 10e12, Bandwidth: 1e12, ComputeShare: 0.5, BandwidthShare: 0.8, Launch: 5 * time.Microsecond}
	for _, test := range []struct {
		name string
		cost graph.Cost
		want time.Duration
	}{
		{"nothing but the launch", graph.Cost{}, 5 * time.Microsecond},
		{"bound by arithmetic", graph.Cost{FLOPs: 5e9, Bytes: 1000}, 1005 * time.Microsecond},
		{"bound by traffic", graph.Cost{FLOPs: 5, Bytes: 8e8}, 1005 * time.Microsecond},
		{"without end", graph.Cost{FLOPs: math.MaxInt64}, 24*time.Hour + 5*time.Microsecond},
		{"at the ridge", graph.Cost{FLOPs: 5e9, Bytes: 8e8}, 1005 * time.Microsecond},
		{"above it", graph.Cost{FLOPs: 10e9, Bytes: 8e8}, 2005 * time.Microsecond},
	} {
		if got := f.Roofline(test.cost); got != test.want {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
	}
}

func TestDevices(t *testing.T) {
	names := Names()
	if !slices.Contains(names, "a6000") || !slices.Contains(names, "v100") {
		t.Errorf("names are %v", names)
	}
	for i, name := range names {
		f, err := Device(name)
		if err != nil || f.Name != name {
			t.Errorf("%s is %+v, %v", name, f, err)
		}
		if slices.Index(names, name) != i {
			t.Errorf("%s stands twice in the table", name)
		}
		for what, x := range map[string]float64{"compute": float64(f.Compute), "bandwidth": float64(f.Bandwidth),
			"out": float64(f.Out.Rate),
			"in":  float64(f.In.Rate), "memory": float64(f.Memory), "launch": float64(f.Launch)} {
			if !(x > 0) || math.IsInf(x, 0) {
				t.Errorf("%s: %s is %v", name, what, x)
			}
		}
		for what, x := range map[string]float64{"compute": f.ComputeShare, "bandwidth": f.BandwidthShare} {
			if !(x > 0 && x <= 1) {
				t.Errorf("%s: ops reach a share of %v of the %s", name, x, what)
			}
		}
		if f.Out.Rate > f.Bandwidth || f.In.Rate > f.Bandwidth {
			t.Errorf("%s: the link is faster than the memory", name)
		}
	}
}

func TestUnknownDevice(t *testing.T) {
	_, err := Device("a600")
	const want = `unknown device "a600": known are a6000, v100, h200, k40, p100, rtx2080ti, gtx1080ti`
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
