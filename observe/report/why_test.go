package report

import (
	"testing"

	"tensile/wire"
)

// What is left of a job that has failed is named, with a flag that makes use of it.
func TestWhy(t *testing.T) {
	c := &wire.Checkpoint{Iteration: 20, File: "/c/1-20.safetensors", Host: "lab"}
	for _, test := range []struct {
		r    wire.Record
		want string
	}{
		{wire.Record{State: wire.JobQueued, Reason: "waits", Checkpoint: c}, "waits"},
		{wire.Record{State: wire.JobFailed, Reason: "lost"}, "lost"},
		{wire.Record{State: wire.JobFailed, Reason: "lost", Checkpoint: c},
			"lost; its newest checkpoint, after 20 iterations, is /c/1-20.safetensors on lab: --from goes on from it"},
		{wire.Record{State: wire.JobFailed, Reason: "NaN", Checkpoint: &wire.Checkpoint{Iteration: 1, File: "c"},
			Diverged: true},
			"NaN; its newest checkpoint, after 1 iterations, is c: --weights begins with its tensors"},
	} {
		if got := Reason(&test.r); got != test.want {
			t.Errorf("%+v: %s, want %s", test.r, got, test.want)
		}
	}
}
