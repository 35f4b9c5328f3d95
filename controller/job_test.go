package controller

import (
	"testing"

	"tensile/controller/plans"
	"tensile/plan"
	"tensile/wire"
)

// Layouts that are taken back from a job before it has an executor are none that a controller after this one finds.
func TestRevoke(t *testing.T) {
	j := &job{}
	for epoch := range int64(3) {
		l := &plans.ProvenLayout{Wire: &wire.Layout{Plan: &plan.Plan{Epoch: epoch + 1}}}
		j.layouts = append(j.layouts, &layout{ProvenLayout: *l, granted: epoch < 2})
	}
	j.record.Granted = 2
	j.revokeGrant()
	if first, last := j.record.Epochs(); first <= last {
		t.Errorf("the layouts from %d to %d may be in force, want none", first, last)
	}
	j.record.Granted = j.newestLayout().Epoch()
	if first, last := j.record.Epochs(); first != 3 || last != 3 {
		t.Errorf("the layouts from %d to %d may be in force, want the third", first, last)
	}
}
