package wire

import "testing"

// TestHides asks what a command means that names both a job and some replicas.
func TestHides(t *testing.T) {
	for _, test := range []struct {
		first, job Record
		want       bool
	}{
		{Record{Seq: 2, State: Queued}, Record{Seq: 1, State: Done}, true},
		{Record{Seq: 1, State: Done}, Record{Seq: 3, State: Training}, false},
		{Record{Seq: 2, State: Done}, Record{Seq: 1, State: Broken}, true},
		{Record{Seq: 1, State: Halted}, Record{Seq: 3, State: Done}, false},
	} {
		if got := test.first.Hides(&test.job); got != test.want {
			t.Errorf("replicas %d (%s) hide job %d (%s): %v, want %v", test.first.Seq, test.first.State, test.job.Seq,
				test.job.State, got, test.want)
		}
	}
}
