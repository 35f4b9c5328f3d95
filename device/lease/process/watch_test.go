package process

import (
	"context"
	"strings"
	"syscall"
	"testing"
	"time"

	"tensile/device/lease"
)

// A lease that hangs is killed, and a new one grants what jobs wait for. One that answers is left alone however long a
// job waits for what others have, which is told.
func TestHung(t *testing.T) {
	g := &rig{t: t, folder: t.TempDir()} // which nobody else has
	answers := make(chan lease.Output)
	hung := make(chan string, 1)
	c := client(t, Options{Name: g.folder, Answer: func(out lease.Output) { answers <- out },
		Log:   func(line string) { hung <- line },
		Start: func() error { g.serve(); return nil }})
	ticks := make(chan time.Time)
	c.ticks = ticks
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- c.Run(ctx) }()
	grant := func(job lease.Job, ask int64) {
		t.Helper()
		if out := <-answers; out.Kind != lease.Grant || out.Job != job || out.Ask != ask {
			t.Errorf("the answer is %v, want a grant of %s's %d", out, job, ask)
		}
	}
	c.Step(lease.Input{Capacity: &lease.Capacity{Pages: 3}})
	for _, job := range []lease.Job{"a", "b"} {
		c.Step(lease.Input{Join: &lease.Join{Job: job, Ask: 1, Base: 1, Peak: 2}})
		grant(job, 1)
	}
	c.Step(lease.Input{Want: &lease.Want{Job: "a", Ask: 2, First: true, Rest: 2, Hold: 2}})
	grant("a", 2)
	c.Step(lease.Input{Want: &lease.Want{Job: "b", Ask: 2, First: true, Rest: 2, Hold: 2}}) // which a has

	since := time.Date(2026, 11, 28, 10, 0, 0, 0, time.UTC)
	for range patience + 1 {
		ticks <- since // the next one is taken when this one was
	}
	if got := c.Waits()["b"]; got != "it waits since 10:00:00 UTC for memory of the device that other jobs have" {
		t.Errorf("b: %q", got)
	}
	if !lives(ctx, g.folder, nil) {
		t.Error("a lease that answers is said to hang")
	}

	c.mu.Lock()
	server := c.server.Pid
	c.mu.Unlock()
	must(t, syscall.Kill(server, syscall.SIGSTOP))
	c.Step(lease.Input{Leave: &lease.Leave{Job: "a"}}) // so that b can have it
	for line := ""; line == ""; {
		select {
		case ticks <- since:
		case line = <-hung:
			if !strings.HasSuffix(line, "hangs: it is killed and started anew") {
				t.Errorf("the log says %s", line)
			}
		}
	}
	grant("b", 2)
	if waits := c.Waits(); len(waits) > 0 {
		t.Errorf("nothing waits, and it says %v", waits)
	}
	cancel()
	must(t, <-ended)
}
