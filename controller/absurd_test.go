package controller

import (
	"math"
	"testing"
	"time"

	"tensile/wire"
)

// Reports of absurd latencies neither end the controller nor keep later jobs from being planned.
func TestAbsurdReports(t *testing.T) {
	w := calmWorld(t, 1, 0)
	w.submit("first", endless)
	w.run(5)
	j := w.machine.findJob("first")
	for i := 1; i <= 60; i++ {
		r := wire.Report{Executor: j.record.Executor, Job: "first", Incarnation: 1, Epoch: j.record.Applied,
			Iteration: i,
			Wall:      math.MaxInt64}
		for range j.newestLayout().Wire.Plan.Steps {
			r.Steps = append(r.Steps, math.MaxInt64)
		}
		w.step(Input{Report: &r})
	}
	var sum time.Duration
	for _, l := range j.latency {
		sum += l
	}
	if sum <= 0 || sum > time.Duration(len(j.latency))*time.Hour {
		t.Errorf("the job is taken to need %v", sum)
	}
	w.submit("second", endless)
	w.run(20)
	if s := w.machine.findJob("second"); s.record.State != wire.JobRunning {
		t.Errorf("the second job is %s: %s", s.record.State, s.record.Reason)
	}
}

// A report that comes before the status of its job says that it runs, and in which arena.
func TestReportBeforeStatus(t *testing.T) {
	w := calmWorld(t, 1, 0)
	w.submit("first", endless)
	j := w.machine.findJob("first")
	for range 100 {
		if j.record.State == wire.JobStarting {
			break
		}
		w.run(1)
	}
	l := j.newestLayout()
	if j.record.State != wire.JobStarting || l == nil || j.record.Arena != 0 {
		t.Fatalf("the job is %s with arena %d", j.record.State, j.record.Arena)
	}
	w.step(Input{Report: &wire.Report{Executor: j.record.Executor, Job: "first", Incarnation: 1, Epoch: l.Epoch(),
		Wall: 1, Steps: make([]time.Duration, len(l.Wire.Plan.Steps))}})
	if j.record.State != wire.JobRunning || j.record.Arena != l.Wire.Arena || j.record.Arena == 0 {
		t.Errorf("the job is %s with arena %d, want %d", j.record.State, j.record.Arena, l.Wire.Arena)
	}
}
