package vdnn

import (
	"testing"

	_ "tensile/internal/long" // the flag -long
	"tensile/scheduler/draft"
)

// TestAsked: after plans that do not pack a greedy trial chooses with four times as much to spare, twice, and then the
// next one is tried; another trial makes way at once; the last one stays; another part begins with the first.
func TestAsked(t *testing.T) {
	trials := Options{}.trials()
	a := askedFor{part: draft.Part{Bytes: 1000, Capacity: 1000}, trial: 3}
	for _, step := range []struct {
		part draft.Part
		want askedFor // without the part
	}{
		{draft.Part{Bytes: 1000, Capacity: 1000}, askedFor{trial: 3}},
		{draft.Part{Bytes: 1000, Capacity: 990}, askedFor{trial: 4}},
		{draft.Part{Bytes: 1000, Capacity: 985}, askedFor{trial: 4, margin: 20, again: 1}},
		{draft.Part{Bytes: 1000, Capacity: 980}, askedFor{trial: 4, margin: 100, again: 2}},
		{draft.Part{Bytes: 1000, Capacity: 970}, askedFor{trial: 5}},
		{draft.Part{Bytes: 1000, Capacity: 960}, askedFor{trial: 5, margin: 40, again: 1}},
		{draft.Part{Bytes: 1000, Capacity: 950}, askedFor{trial: 5, margin: 200, again: 2}},
		{draft.Part{Bytes: 1000, Capacity: 940}, askedFor{trial: 6}},
		{draft.Part{Bytes: 1000, Capacity: 930}, askedFor{trial: 6}},
		{draft.Part{Bytes: 900, Capacity: 900}, askedFor{}},
	} {
		a.startPart(trials, step.part)
		if step.want.part = step.part; a != step.want {
			t.Errorf("asked for %v: %+v, want %+v", step.part, a, step.want)
		}
	}
}
