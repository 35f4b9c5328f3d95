package report

import (
	"testing"
	"time"

	"tensile/controller/local"
	"tensile/wire"
)

// A start goes from when the first of all jobs left Home to the end of the job's first iteration.
func TestStart(t *testing.T) {
	run := func(left, first [2]time.Duration) *local.Run {
		var r local.Run
		for i := range left {
			r.Jobs = append(r.Jobs, local.JobRun{Result: wire.Result{Left: left[i], First: first[i]}})
		}
		return &r
	}
	planned := run([2]time.Duration{100, 120}, [2]time.Duration{160, 220})
	vanilla := run([2]time.Duration{10, 5}, [2]time.Duration{25, 65})
	for job, want := range []struct {
		start time.Duration
		eor   float64
	}{{60, 3}, {120, 2}} {
		took, ok := startupTime(planned, job)
		if eor := startEOR(planned, vanilla, job); !ok || took != want.start || eor == nil || *eor != want.eor {
			t.Errorf("job %d: start %v, EOR %v; want %v, %v", job, took, eor, want.start, want.eor)
		}
	}
	ended := run([2]time.Duration{100, 0}, [2]time.Duration{160, 0}) // the second before its first iteration
	if took, ok := startupTime(ended, 0); !ok || took != 60 {
		t.Errorf("beside a job without an iteration: start %v", took)
	}
	if _, ok := startupTime(ended, 1); ok || startEOR(ended, vanilla, 1) != nil || startEOR(vanilla, ended, 1) != nil {
		t.Error("a job without an iteration has a start")
	}
}

func TestFirstEOR(t *testing.T) {
	if e := firstEOR(&local.Watched{First: 3}, &local.Watched{First: 2}); e == nil || *e != 1.5 {
		t.Errorf("got %v, want 1.5", e)
	}
	if firstEOR(&local.Watched{First: 3}, &local.Watched{}) != nil {
		t.Error("an EOR against nothing")
	}
}
