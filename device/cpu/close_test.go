package cpu

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"tensile/plan/program"
)

// Close ends lanes that wait, that hold and that have a queue. A command that runs ends first, and is not told of.
func TestCloseInTheMiddle(t *testing.T) {
	d := open(t)
	started, release := make(chan struct{}), make(chan struct{})
	b := lay(t, d, map[int]func(){1: func() { close(started); <-release }})
	b.reserve(4 * elements)
	b.issue(section(load(), load(),
		b.in(parameter, 4, 0, after(program.Host, 2)),     // waits for what never ends
		b.out(parameter, 4, 24*time.Hour),                 // is held
		b.out(parameter, 4, 0, after(program.CopyIn, 1))), // stands behind it
		0, true)
	<-started
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		b.close()
	}()
	select {
	case <-closed:
		t.Error("Close returned while a command was running")
	default:
	}
	b.waitClosed()
	close(release)
	<-closed
	if b.at != 1 {
		t.Errorf("%d loads, want the one that was running", b.at)
	}
	for what, m := range map[string]memory{"arena": b.arena, "kept": b.kept, "spilled": b.loaded.spilled} {
		if m.mapping != nil || m.bytes != nil {
			t.Errorf("%s still has %d bytes", what, len(m.bytes))
		}
	}
	if n := d.claimed.Load(); n != 0 {
		t.Errorf("%d bytes are still claimed", n)
	}
	// The device serves other jobs, and tells nothing of this one.
	other := lay(t, d, nil)
	defer other.close()
	other.issue(section(load()), 0, true)
	events, err := d.Next(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events {
		if e.Job != other.job {
			t.Errorf("an event of a closed job: %+v", e)
		}
	}
}

// waitClosed returns when Close has been called.
func (b *bed) waitClosed() {
	b.until(func() bool { return b.closed })
}

// rest waits until all that was issued has ended, without taking the events.
func (b *bed) rest() {
	b.until(func() bool { return b.lanes.Idle() })
}

// until yields to the lanes until something holds.
func (b *bed) until(holds func() bool) {
	for {
		b.mu.Lock()
		now := holds()
		b.mu.Unlock()
		if now {
			return
		}
		runtime.Gosched()
	}
}

// A job that is closed before its events were taken has none.
func TestCloseForgetsEvents(t *testing.T) {
	d := open(t)
	a, b := lay(t, d, nil), lay(t, d, nil)
	defer b.close()
	a.issue(section(load()), 0, true)
	b.issue(section(load()), 0, true)
	a.rest()
	b.rest()
	a.close()
	events, err := d.Next(t.Context(), nil)
	if err != nil || len(events) != 1 || events[0].Job != b.job {
		t.Errorf("events %+v and error %v, want the one of the other job", events, err)
	}
}

// A context that is done comes first, however many events there are; a signal does not hide events.
func TestNextPrefers(t *testing.T) {
	d := open(t)
	b := lay(t, d, nil)
	defer b.close()
	b.issue(section(load()), 0, true)
	b.rest()
	cause := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	if events, err := d.Next(ctx, nil); !errors.Is(err, cause) || events != nil {
		t.Errorf("cancelled: %d events and error %v", len(events), err)
	}
	wake := make(chan struct{}, 1)
	wake <- struct{}{}
	if events, err := d.Next(t.Context(), wake); err != nil || len(events) != 1 {
		t.Errorf("%d events and error %v, want the event that was left", len(events), err)
	}
	if events, err := d.Next(t.Context(), wake); err != nil || events != nil {
		t.Errorf("woken: %d events and error %v", len(events), err)
	}
}

// An arena that the machine cannot map is an error that names job and size, and leaves the job without an arena.
func TestReserveTooMuch(t *testing.T) {
	d := open(t)
	b := lay(t, d, nil)
	defer b.close()
	b.reserve(align)
	err := b.Reserve(1 << 60)
	if err == nil || !strings.Contains(err.Error(), "job bed") || !strings.Contains(err.Error(), "1073741824GiB") {
		t.Errorf("error %v, want one that names job and size", err)
	}
	if m := b.arena; m.mapping != nil {
		t.Errorf("an arena of %d bytes after an error", len(m.bytes))
	}
	b.reserve(align)
}
