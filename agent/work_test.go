package agent

import (
	"math"
	"slices"
	"testing"

	"tensile/wire"
)

// Losses are kept to the bit; so many that no message holds them are left out.
func TestLosses(t *testing.T) {
	var l losses
	if l.at(0) != nil || l.all() != nil {
		t.Error("there are losses before the first iteration")
	}
	nan := float32(math.NaN())
	for i, loss := range []float32{3, nan, -1} {
		l.set(i, loss)
	}
	if got := l.all(); len(got) != 3 || got[0] != 3 || !math.IsNaN(float64(got[1])) || *l.at(2) != -1 ||
		l.at(3) != nil {
		t.Errorf("losses %v", got)
	}
	l.set(wire.MaxLosses-1, 7)
	if got := l.all(); len(got) != wire.MaxLosses || !slices.Equal(got[2:3], []float32{-1}) {
		t.Errorf("%d losses", len(got))
	}
	l.set(wire.MaxLosses, 8)
	if got := l.all(); got != nil || *l.at(wire.MaxLosses) != 8 {
		t.Errorf("%d losses are for a message", len(got))
	}
}
