package controller

import (
	"slices"
	"testing"
	"time"

	"tensile/wire"
)

// Moves that save too little have nothing move on their host, for twice as long each time; one that keeps its promise
// ends that, and one after which a job has come or gone shows nothing. The first iteration after a move is not timed.
// Of a move between hosts the same holds for both.
func TestProofs(t *testing.T) {
	m := newLab(t, 1, 3).machine
	testProofs(t, m, m.domains[0], m.domains[1], []string{"h1"}, "h2")
	m = newLab(t, 1, 3).machine
	testProofs(t, m, m.domains[0], m.domains[2], []string{"h1", "h2"}, "h3")
}

// testProofs holds that for two devices, their hosts, and another one, on which jobs may move all the time.
func testProofs(t *testing.T, m *Machine, from, to *domain, hosts []string, elsewhere string) {
	t.Helper()
	mover, other, third := new(job), new(job), new(job)
	mover.domain, other.domain, third.domain = to, from, to
	for _, j := range []*job{mover, other, third} {
		j.record.State = wire.JobRunning
	}
	prove := func(took time.Duration, jobs ...*job) time.Duration {
		m.jobs = []*job{mover, other}
		m.migrations.checks = []*moveCheck{{mover: mover, from: from, to: to, gain: 20 * time.Second, arrived: true,
			jobs: []timedJob{{job: other, domain: from, weight: 10, before: 2 * time.Second},
				{job: mover, domain: to, weight: 10, before: 2 * time.Second}}}}
		if m.now = m.migrations.coolDowns["h1"].until; slices.ContainsFunc(hosts, m.isInCoolDown) {
			t.Errorf("at %v nothing moves although the rest is over", m.now)
		}
		m.jobs = append(m.jobs, jobs...)
		for i := range checkIterations + 1 {
			if m.judgeMoveChecks(); len(m.migrations.checks) == 0 && len(jobs) == 0 {
				t.Errorf("judged after %d iterations", i)
			}
			if i == 0 {
				m.migrations.timeIteration(mover, time.Hour)
				m.migrations.timeIteration(other, time.Hour)
				continue
			}
			m.migrations.timeIteration(mover, took)
			m.migrations.timeIteration(other, 2*time.Second)
		}
		if !m.migrations.awaitsCheck(to) && len(jobs) == 0 {
			t.Error("the target takes jobs before the move is judged")
		}
		if m.judgeMoveChecks(); len(m.migrations.checks) > 0 {
			t.Errorf("after %v: not judged", took)
		}
		for _, host := range hosts {
			if got, want := m.migrations.coolDowns[host], m.migrations.coolDowns["h1"]; got != want {
				t.Errorf("host %s: %+v, host h1: %+v", host, got, want)
			}
		}
		if m.isInCoolDown(elsewhere) {
			t.Errorf("nothing moves on host %s", elsewhere)
		}
		return m.migrations.coolDowns["h1"].until - m.now
	}
	for i, c := range []struct {
		took  time.Duration // of which half of the promise is kept if it is a second
		third bool
		rest  time.Duration
	}{
		{took: 1001 * time.Millisecond, rest: 10 * time.Minute},
		{took: 3 * time.Second, rest: 20 * time.Minute},
		{took: 3 * time.Second, third: true},
		{took: 2 * time.Second, rest: 40 * time.Minute},
		{took: time.Second},
		{took: 2 * time.Second, rest: 10 * time.Minute},
	} {
		var more []*job
		if c.third {
			more = []*job{third}
		}
		if got := prove(c.took, more...); got != c.rest && (c.rest > 0 || got > 0) {
			t.Errorf("move %d: nothing moves for %v, want %v", i+1, got, c.rest)
		}
	}
}

// The check of a migration ends when a job is on another device than the migration has left it on, or trains no more.
func TestMoveCheckOfJobsElsewhere(t *testing.T) {
	d, other := new(domain), new(domain)
	for _, j := range []*job{{domain: other, record: wire.Record{State: wire.JobRunning}},
		{domain: d, record: wire.Record{State: wire.JobParked}}} {
		if p := (&moveCheck{jobs: []timedJob{{job: j, domain: d}}}); p.isValid() {
			t.Errorf("a job that is %s counts", j.record.State)
		}
	}
}
