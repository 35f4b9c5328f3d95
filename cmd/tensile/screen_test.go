package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"tensile/models/task"
	"tensile/peak"
	"tensile/scheduler"
	"tensile/scheduler/planner"
	"tensile/wire"
)

// twoJobs is a session of which a screen can speak.
func twoJobs() (*session, *planner.Planned) {
	p := &planner.Planned{Result: scheduler.Result{Jobs: []scheduler.Scheduled{
		{Footprint: peak.Footprint{Peak: 1 << 20}}, {Footprint: peak.Footprint{Peak: 2 << 20}}}}}
	return &session{Session: &planner.Session{Tasks: []task.Task{{Name: "a"}, {Name: "b"}}, Planned: p}}, p
}

// withLoss is the report of an iteration on a device with data.
func withLoss(iteration int, loss wire.Loss) *wire.Report {
	r := silent(iteration)
	r.Loss = &loss
	return r
}

// silent is the report of an iteration on a device without data.
func silent(iteration int) *wire.Report {
	return &wire.Report{Iteration: iteration, Wall: 250 * time.Millisecond, Stall: 3 * time.Millisecond}
}

// On a terminal each job has a line, which is drawn over.
func TestTerminal(t *testing.T) {
	var out bytes.Buffer
	s, p := twoJobs()
	screen := &screen{out: &out, session: s, terminal: true, iterations: 10}
	screen.part("tensile")
	observe := screen.observer(p)
	observe.iteration(1, withLoss(0, 2.5))
	observe.iteration(0, silent(0))
	const (
		waiting = "\r\x1b[2K  a            waiting\n"
		a       = "\r\x1b[2K  a             1/10     4.00 it/s  resident 1MiB  stall 3.0 ms\n"
		b       = "\r\x1b[2K  b             1/10     4.00 it/s  loss 2.5000  resident 2MiB  stall 3.0 ms\n"
	)
	if want := "tensile:\n" + waiting + b + "\x1b[2A" + a + b; out.String() != want {
		t.Errorf("drawn:\n%q, want:\n%q", out.String(), want)
	}
	// The next part begins below the last drawing.
	out.Reset()
	screen.part("again")
	screen.observer(p).iteration(0, withLoss(9, 1))
	if strings.Contains(out.String(), "\x1b[2A") {
		t.Errorf("a new part draws over the old one: %q", out.String())
	}
}

// What is resident is the slot peak of the plan in force, not of the first one.
func TestResident(t *testing.T) {
	var out bytes.Buffer
	s, p := twoJobs()
	screen := newScreen(&out, s, false, 2)
	screen.part("tensile")
	observe := screen.observer(p)
	observe.iteration(0, silent(0))
	observe.applied(0, 512<<10)
	observe.iteration(0, silent(1))
	if text := out.String(); !strings.Contains(text, "1/2     4.00 it/s  resident 1MiB") ||
		!strings.Contains(text, "2/2     4.00 it/s  resident 512KiB") {
		t.Errorf("printed:\n%s", text)
	}
}

// Elsewhere a job has a line at first, at last, and not for every iteration in between.
func TestNoTerminal(t *testing.T) {
	var out bytes.Buffer
	s, p := twoJobs()
	screen := newScreen(&out, s, false, 3)
	screen.part("tensile")
	observe := screen.observer(p)
	for i := range 3 {
		observe.iteration(0, withLoss(i, 1))
	}
	text := out.String()
	if strings.ContainsAny(text, "\x1b\r") || !strings.Contains(text, " 1/3 ") || !strings.Contains(text, " 3/3 ") ||
		strings.Count(text, "it/s") > 3 {
		t.Errorf("printed:\n%s", text)
	}
}

// With --json a screen is silent.
func TestSilent(t *testing.T) {
	var out bytes.Buffer
	s, p := twoJobs()
	screen := newScreen(&out, s, true, 3)
	screen.head("tensile", wire.NoSharing)
	screen.part("tensile")
	if screen.observer(p) != nil || out.Len() > 0 {
		t.Errorf("printed %q", out.String())
	}
}
