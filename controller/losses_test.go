package controller

import (
	"math"
	"testing"

	"tensile/wire"
)

// Of a job whose executor is lost the losses remain that were heard of, each at its iteration.
func TestLosses(t *testing.T) {
	var l losses
	one, two := wire.Loss(1), wire.Loss(2)
	l.add(0, nil)
	if l.result() != nil || l.last != nil {
		t.Error("there are losses of a device without data")
	}
	l.add(0, &one)
	l.add(2, &two)
	if got := l.result().Losses; len(got) != 3 || got[0] != 1 || !math.IsNaN(float64(got[1])) || got[2] != 2 ||
		*l.last != 2 {
		t.Errorf("losses %v", got)
	}
	l.add(wire.MaxLosses, &one)
	l.add(3, &two)
	if l.result() != nil || *l.last != 2 {
		t.Errorf("a long job has %v", l.result())
	}
}
