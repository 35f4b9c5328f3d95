package controller

import (
	"fmt"
	"slices"
	"testing"

	"tensile/controller/fleet"
	"tensile/graph"
	"tensile/wire"
)

// Of jobs that are over the oldest are forgotten, but none of which something may still be at an executor.
func TestRetire(t *testing.T) {
	m := NewMachine(Config{Device: "model", KeepJobs: 1})
	for _, name := range []string{"held", "old", "new"} {
		m.jobs = append(m.jobs, &job{domain: m.ownDomain, record: wire.Record{State: wire.JobFinished,
			Spec: wire.Spec{Name: name, Graph: graph.Digest(name)}}})
	}
	m.jobs[0].record.Held = []wire.Holding{{Executor: "lab1"}}
	m.forgetOldJobs()
	if len(m.jobs) != 2 || m.findJob("held") == nil || m.findJob("new") == nil {
		t.Errorf("%d jobs are left: held %v, old %v, new %v", len(m.jobs), m.findJob("held"), m.findJob("old"),
			m.findJob("new"))
	}
}

// What an executor may have is free when this process says, of its newest orders, that it has it not; or when it has
// ended, and no other of its name.
func TestHolds(t *testing.T) {
	m := NewMachine(Config{Device: "model"})
	x := &fleet.Executor{Name: "lab1", State: fleet.Present, Process: fleet.Process{Life: "1"},
		Orders: wire.Orders{Number: 5}}
	m.executors["lab1"] = x
	j := &job{domain: m.ownDomain, record: wire.Record{Spec: wire.Spec{Name: "one", ID: 7}, State: wire.JobQueued}}
	m.jobs = []*job{j}
	held := wire.Holding{Executor: "lab1", Life: "1", ID: 7, Incarnation: 1, Bytes: 64}
	has := []wire.JobStatus{{Name: "one", ID: 7, Incarnation: 1}}
	for _, c := range []struct {
		what   string
		life   string // that may have it
		status wire.Status
		free   bool
	}{
		{"older orders", "1", wire.Status{Orders: 4}, false},
		{"it has it", "1", wire.Status{Orders: 5, Jobs: has}, false},
		{"it has another incarnation", "1", wire.Status{Orders: 5, Jobs: []wire.JobStatus{{Name: "one", ID: 7}}}, true},
		{"another process", "0", wire.Status{Orders: 5}, false},
		{"it has nothing", "1", wire.Status{Orders: 5}, true},
	} {
		held.Life = c.life
		j.record.Held = []wire.Holding{held}
		if m.settleReservations(x, &c.status); (len(j.record.Held) == 0) != c.free {
			t.Errorf("%s: held are %v", c.what, j.record.Held)
		}
	}
	x.Orders.Jobs = []wire.Assignment{{Spec: j.record.Spec, Incarnation: 1}}
	j.record.Held = []wire.Holding{held}
	if m.settleReservations(x, &wire.Status{Orders: 5}); len(j.record.Held) == 0 {
		t.Error("what it is ordered to have is free")
	}
	if m.processEnded("lab1", "0", "it has ended"); x.IsGone() || len(j.record.Held) == 0 {
		t.Errorf("an older process has ended: gone %v, held are %v", x.IsGone(), j.record.Held)
	}
	if m.processEnded("lab1", "1", "it has ended"); !x.IsGone() || len(j.record.Held) > 0 {
		t.Errorf("it has ended: gone %v, held are %v", x.IsGone(), j.record.Held)
	}
}

// Of jobs that are over the oldest of the owner who has most of them is forgotten: a user with many does not have
// those of others forgotten.
func TestForgetsFairly(t *testing.T) {
	m := NewMachine(Config{Device: "model", KeepJobs: 3})
	for i, owner := range []string{"ada", "", "eve", "eve", "ada", "eve", "eve"} {
		m.jobs = append(m.jobs, &job{record: wire.Record{State: wire.JobStopped,
			Spec: wire.Spec{Name: fmt.Sprint(owner, i), Owner: owner}}})
	}
	m.forgetOldJobs()
	var left []string
	for _, j := range m.jobs {
		left = append(left, j.record.Spec.Name)
	}
	if want := []string{"1", "ada4", "eve6"}; !slices.Equal(left, want) {
		t.Errorf("of the jobs that are over %q are left, want %q", left, want)
	}
}
