package report

import (
	"math"
	"testing"
	"time"

	"tensile/plan"
	"tensile/wire"
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

// A start goes from when the first of all jobs left Home to the end of the job's first iteration.
func TestStart(t *testing.T) {
	run := func(left, first [2]time.Duration) *Run {
		var r Run
		for i := range left {
			r.Jobs = append(r.Jobs, JobRun{Result: wire.Result{Left: left[i], First: first[i]}})
		}
		return &r
	}
	planned := run([2]time.Duration{100, 120}, [2]time.Duration{160, 220})
	vanilla := run([2]time.Duration{10, 5}, [2]time.Duration{25, 65})
	for job, want := range []struct {
		start time.Duration
		eor   float64
	}{{60, 3}, {120, 2}} {
		start, ok := planned.start(job)
		if eor := planned.startEOR(vanilla, job); !ok || start != want.start || eor == nil || *eor != want.eor {
			t.Errorf("job %d: start %v, EOR %v; want %v, %v", job, start, eor, want.start, want.eor)
		}
	}
	ended := run([2]time.Duration{100, 0}, [2]time.Duration{160, 0}) // the second before its first iteration
	if start, ok := ended.start(0); !ok || start != 60 {
		t.Errorf("beside a job without an iteration: start %v", start)
	}
	if _, ok := ended.start(1); ok || ended.startEOR(vanilla, 1) != nil || vanilla.startEOR(ended, 1) != nil {
		t.Error("a job without an iteration has a start")
	}
}

func TestFirstEOR(t *testing.T) {
	if e := firstEOR(&Watched{First: 3}, &Watched{First: 2}); e == nil || *e != 1.5 {
		t.Errorf("got %v, want 1.5", e)
	}
	if firstEOR(&Watched{First: 3}, &Watched{}) != nil {
		t.Error("an EOR against nothing")
	}
}
