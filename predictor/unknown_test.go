package predictor

import (
	"math"
	"slices"
	"testing"
	"time"
)

// What an empty op takes is measured on the hosts of the samples, and on others taken as there, with a p95 that allows
// for more.
func TestLaunches(t *testing.T) {
	devices := append(boards(), Device{Name: "NVIDIA W4", FLOPs: 14e12, Bandwidth: 900e9, Units: 72, Clock: 1.4e9,
		Cache: 6e6})
	for i := range devices {
		devices[i].Launch = 0
	}
	m, err := Train(measured(2400, 1, devices[:3]), devices, Options{Effort: 0.05, Hidden: []int{16, 16, 16}})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 { // the law has 25 us on each
		if l := m.Devices[i].Launch; l < 25*time.Microsecond || l > 30*time.Microsecond {
			t.Errorf("%s: a launch of %v, want some more than 25us", m.Devices[i].Name, l)
		}
	}
	unknown := m.Devices[3]
	if unknown.Launch != 0 {
		t.Errorf("a launch of %v was measured on a host without samples", unknown.Launch)
	}
	known := unknown
	known.Launch = usualLaunch(m.Devices)
	calls := []Call{{Kind: "relu", Form: Stream, Dims: stream(64, 64, 1, 1)}, {Kind: "linear", Form: Gemm,
		Dims: Dims{B: 1, M: 512, N: 512, K: 512}}}
	a, b := m.Predict(&known, calls), m.Predict(&unknown, calls)
	for i := range calls {
		want := a[i].P95.Seconds()*board + known.Launch.Seconds()
		if a[i].P50 != b[i].P50 || math.Abs(b[i].P95.Seconds()-want) > 2e-9 {
			t.Errorf("%s: %+v on a host that was measured, %+v on one that was not", calls[i].Kind, a[i], b[i])
		}
	}
}

// Where one family is slower than its facts say, so may be a device that was never seen: p95 knows, of devices that
// were seen it does not.
func TestLeavingOutWidens(t *testing.T) {
	samples := slices.DeleteFunc(measured(1800, 1, boards()), func(s Sample) bool { return s.Form != Stream })
	for i := range samples {
		if samples[i].Device == 2 {
			samples[i].Seconds *= 4
		}
	}
	m, err := Train(samples, boards(), Options{Effort: 0.1, Hidden: []int{16, 16, 16}})
	if err != nil {
		t.Fatal(err)
	}
	if g := &m.Groups[0]; g.Unseen < 0.5 || g.Seen > 0.5 {
		t.Errorf("bands of %v and %v", g.Seen, g.Unseen)
	}
	other := Device{Name: "NVIDIA W4", FLOPs: 14e12, Bandwidth: 900e9, Units: 72, Clock: 1.4e9, Cache: 6e6,
		Launch: 10 * time.Microsecond}
	p := m.Predict(&other, []Call{{Kind: "relu", Form: Stream, Dims: stream(4096, 4096, 1, 1)}})[0]
	if wide := math.Log(float64(p.P95) / float64(p.P50)); wide < m.Groups[0].Unseen {
		t.Errorf("p95 is e^%.2f of p50, want e^%.2f at least", wide, m.Groups[0].Unseen)
	}
}

// Operands within the cache go at its rate, those of twice its size at that of memory.
func TestCacheRate(t *testing.T) {
	d := Device{FLOPs: 1e15, Bandwidth: 1e9, Cache: 8e6, CacheRate: 4e9}
	for _, test := range []struct {
		elements int
		rate     float64
	}{{1e5, 4e9}, {1e6, 4e9}, {2e6, 1e9}, {1e8, 1e9}} {
		c := Call{Form: Stream, Dims: stream(1, test.elements, 1, 1)}
		if got, want := d.Roofline(&c), c.bytes()/test.rate; math.Abs(got/want-1) > 1e-9 {
			t.Errorf("%v bytes take %v s, want %v", c.bytes(), got, want)
		}
	}
	half := Call{Form: Stream, Dims: stream(1, 15e5, 1, 1)} // 12 MB
	if got, want := d.Roofline(&half), 6e6/4e9+6e6/1e9; math.Abs(got/want-1) > 1e-9 {
		t.Errorf("12 MB of which half are within the cache take %v s, want %v", got, want)
	}
	d.CacheRate = 0 // as in models that do not know it
	if got, want := d.Roofline(&half), 12e6/1e9; math.Abs(got/want-1) > 1e-9 {
		t.Errorf("12 MB take %v s of a cache of unknown rate, want %v", got, want)
	}
}

// Rows wider than any that was trained on take as long as more of the widest, and p95 is wider.
func TestWideRows(t *testing.T) {
	m := model(t)
	d := &m.Devices[0]
	g := &m.Groups[slices.IndexFunc(m.Groups, func(g Group) bool { return g.Form == Stream })]
	widest := int(math.Round(math.Exp2(float64(g.High[slices.Index(featureNames(Stream), "width")]))))
	call := func(rows, width int) Call { return Call{Kind: "relu", Form: Stream, Dims: stream(rows, width, 1, 1)} }
	inside := m.Predict(d, []Call{call(4096, widest)})[0]
	before := inside
	for times := 2; times <= 32; times *= 2 {
		p := m.Predict(d, []Call{call(4096/times, widest*times)})[0]
		if ratio := p.P50.Seconds() / inside.P50.Seconds(); math.Abs(ratio-1) > 0.01 {
			t.Errorf("rows %d times as wide and as few take %.3f times as long", times, ratio)
		}
		if p.Outside <= before.Outside || float64(p.P95)/float64(p.P50) <= float64(before.P95)/float64(before.P50) {
			t.Errorf("rows %d times as wide: %+v after %+v", times, p, before)
		}
		before = p
	}
}
