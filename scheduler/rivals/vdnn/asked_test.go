package vdnn

import (
	"testing"

	"tensile/scheduler/rivals/each"

	_ "tensile/internal/long" // the flag -long
)

// TestAsked: after plans that do not pack a greedy trial chooses with four times as much to spare, twice, and then the
// next one is tried; another trial makes way at once; the last one stays; another part begins with the first.
func TestAsked(t *testing.T) {
	trials := Options{}.trials()
	a := askedFor{part: each.Part{Bytes: 1000, Capacity: 1000}, trial: 3}
	for _, step := range []struct {
		part each.Part
		want askedFor // without the part
	}{
		{each.Part{Bytes: 1000, Capacity: 1000}, askedFor{trial: 3}},
		{each.Part{Bytes: 1000, Capacity: 990}, askedFor{trial: 4}},
		{each.Part{Bytes: 1000, Capacity: 985}, askedFor{trial: 4, margin: 20, again: 1}},
		{each.Part{Bytes: 1000, Capacity: 980}, askedFor{trial: 4, margin: 100, again: 2}},
		{each.Part{Bytes: 1000, Capacity: 970}, askedFor{trial: 5}},
		{each.Part{Bytes: 1000, Capacity: 960}, askedFor{trial: 5, margin: 40, again: 1}},
		{each.Part{Bytes: 1000, Capacity: 950}, askedFor{trial: 5, margin: 200, again: 2}},
		{each.Part{Bytes: 1000, Capacity: 940}, askedFor{trial: 6}},
		{each.Part{Bytes: 1000, Capacity: 930}, askedFor{trial: 6}},
		{each.Part{Bytes: 900, Capacity: 900}, askedFor{}},
	} {
		a.startPart(trials, step.part)
		if step.want.part = step.part; a != step.want {
			t.Errorf("asked for %v: %+v, want %+v", step.part, a, step.want)
		}
	}
}
