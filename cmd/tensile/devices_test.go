package main

import (
	"errors"
	"testing"

	"tensile/device/cuda"
	"tensile/graph"
	"tensile/internal/fakecuda"
)

// What a context takes is what the used memory rises by while the device is open; 0 where nobody says.
func TestContext(t *testing.T) {
	fake := func() (cuda.Driver, error) { return fakecuda.New(fakecuda.Options{}), nil }
	used := graph.Bytes(100)
	rising := func(bus string) (graph.Bytes, bool) {
		if bus != "00000000:65:00.0" {
			t.Errorf("asked for %s", bus)
		}
		used += 7
		return used, true
	}
	unknown := func(string) (graph.Bytes, bool) { return 0, false }
	for _, test := range []struct {
		used func(string) (graph.Bytes, bool)
		want graph.Bytes
	}{{rising, 7}, {unknown, 0}} {
		got, err := cudaDevices(fake, test.used)
		if err != nil || len(got) != 1 || got[0].Context != test.want || got[0].Name != "fake a6000" {
			t.Errorf("got %+v, %v, want a context of %v", got, err, test.want)
		}
	}
	none := errors.New("no driver")
	if got, err := cudaDevices(func() (cuda.Driver, error) { return nil, none }, unknown); got != nil || err != none {
		t.Errorf("got %v, %v", got, err)
	}
}
