package wire

import "testing"

// TestHides asks what a command means that names both a job and some replicas.
func TestHides(t *testing.T) {
	for _, test := range []struct {
		first, job Record
		want       bool
	}{
		{Record{Order: 2, State: JobQueued}, Record{Order: 1, State: JobFinished}, true},
		{Record{Order: 1, State: JobFinished}, Record{Order: 3, State: JobRunning}, false},
		{Record{Order: 2, State: JobFinished}, Record{Order: 1, State: JobFailed}, true},
		{Record{Order: 1, State: JobStopped}, Record{Order: 3, State: JobFinished}, false},
	} {
		if got := test.first.Hides(&test.job); got != test.want {
			t.Errorf("replicas %d (%s) hide job %d (%s): %v, want %v", test.first.Order, test.first.State,
				test.job.Order,
				test.job.State, got, test.want)
		}
	}
}
