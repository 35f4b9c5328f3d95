package controller

import (
	"strings"
	"testing"
	"time"

	"tensile/controller/fleet"
	"tensile/wire"
)

// Where jobs share memory an executor whose lease would be another than that of one that is heard of is sent away and
// told why, whether it was started from here or by hand. One that is out of reach counts whole, and forbids nothing.
func TestOneLease(t *testing.T) {
	m := NewMachine(Config{Device: "gpu", Name: "own", Page: 64, MemorySharing: wire.Gates, Watched: true})
	m.executors["x1"] = &fleet.Executor{Name: "x1", State: fleet.Awaited, Launched: true, Kind: fleet.ForJobs}
	number, now := int64(0), time.Second
	// says has an executor be heard of at a place, and returns why it is refused.
	says := func(name, place string) (refused string) {
		number, now = number+1, now+time.Second
		s := &wire.Status{Executor: name, Number: number, Life: name + "'s", Device: "gpu", Host: "host " + name,
			Place: place}
		if !wire.Owned(name) {
			s.Brings = &wire.Device{Name: "own", Identity: "gpu"}
		}
		for _, out := range m.Step(now, Input{Status: s}) {
			if out.Orders != nil && out.Orders.Refused != nil && out.Orders.Life == s.Life {
				refused = out.Orders.Refused.Reason
			}
		}
		return refused
	}
	if why := says("lab1", "here"); why != "" {
		t.Errorf("the first is refused: %s", why)
	}
	for _, name := range []string{"lab2", "x1", "x1"} { // again, if the orders were lost
		if why := says(name, "there"); !strings.Contains(why, "with executor lab1 on host lab1: start both") {
			t.Errorf("%s, which is elsewhere, is refused by %q", name, why)
		}
	}
	m.Step(now, Input{Ended: &ExecutorEnd{"x1", []string{"x1's"}, "it was sent away"}})
	if x := m.executors["x1"]; x.State != fleet.Dead {
		t.Error("an executor that was sent away and has ended is not dead")
	}
	if why := says("lab3", "here"); why != "" {
		t.Errorf("one that is there too is refused: %s", why)
	}
	m.executors["lab1"].State, m.executors["lab3"].State = fleet.Silent, fleet.Silent
	if why := says("lab4", "there"); why != "" {
		t.Errorf("beside executors that are out of reach one is refused: %s", why)
	}
	if why := says("lab1", "here"); !strings.Contains(why, "with executor lab4") {
		t.Errorf("one that comes back to others elsewhere is refused by %q", why)
	}
}
