package local

import (
	"math"
	"testing"
	"time"

	"tensile/plan"
)

func TestWatchedError(t *testing.T) {
	p := &plan.Plan{Steps: make([]plan.Step, 3), Made: []time.Duration{100, 200, 50}}
	var w Watched
	if w.Error(p) != nil {
		t.Error("an error without a report")
	}
	w.Add(0, 1, time.Second, []time.Duration{999, 999, 999})
	if e := w.Error(p); e == nil { // nothing else is known yet
		t.Error("no error after the first report")
	}
	w.Add(1, 1, time.Millisecond, []time.Duration{100, 100, 0})
	w.Add(2, 1, time.Millisecond, []time.Duration{100, 400, 0})
	w.Add(3, 1, time.Millisecond, []time.Duration{200, 250, 0})
	w.Add(4, 2, time.Millisecond, []time.Duration{1, 1}) // of another plan
	if e := w.Error(p); e == nil || math.Abs(*e-(0+50.0/250)/2) > 1e-12 {
		t.Errorf("got %v, want 0.1: medians are 100 and 250, the third step is unknown", *e)
	}
	if w.First != time.Second {
		t.Errorf("the first iteration took %v", w.First)
	}
}
