package bench

import (
	"testing"

	"tensile/graph"
	"tensile/wire"
)

// All jobs are admitted within the budget, and when one has gone plans are made for those that are left.
func TestMeasureReplans(t *testing.T) {
	r, err := MeasureReplans(t.Context(), 6, 1, 12*graph.GiB, wire.NoSharing, 2)
	if err != nil {
		t.Fatal(err)
	}
	if r.First <= 0 || r.Arrival <= 0 || r.Departure <= 0 || r.Changed < 1 || r.Changed > 6 {
		t.Errorf("%+v", r)
	}
}
