package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"tensile/wire"
)

// awayBus is a bus that can be away.
type awayBus struct {
	Bus
	mu    sync.Mutex
	there bool
	lines []string
	stuck int // appends that get no answer
	full  int // appends that are refused after these
}

func (b *awayBus) Connected() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.there
}

func (b *awayBus) Append(_ context.Context, log string, line []byte) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.stuck > 0 {
		b.stuck--
		return fmt.Errorf("no answer: %w", context.DeadlineExceeded)
	}
	if b.full > 0 {
		b.full--
		return errors.New("executor x1 sends too much")
	}
	b.lines = append(b.lines, string(line))
	return nil
}

func (b *awayBus) Put(_ context.Context, _ string, value []byte) error {
	s, err := wire.DecodeAs[wire.Status](value)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lines = append(b.lines, fmt.Sprint("status ", s.Number))
	return err
}

// back makes the bus there again, where the next append gets no answer.
func (b *awayBus) back() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.there, b.stuck = true, 1
}

// Lines that are logged while the controller is away are said when it is back, before the status that is newer than
// they are: the newest thousand, with a word about those that were too many. A status that found no controller is lost;
// one that comes while lines get no answer is said before them.
func TestLinesAreKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &awayBus{}
		s := newSender(&Options{Executor: "x1", Bus: b, Log: slog.New(slog.DiscardHandler)})
		status := func(n int64) *wire.Status { return &wire.Status{Executor: "x1", Number: n, Life: "1"} }
		const more = 234
		for i := range mostLines + more {
			s.addLine(&logLine{"lenet", fmt.Sprint("iteration ", i)})
			if i%100 == 0 {
				s.setStatus(status(1))
			}
		}
		s.addLine(&logLine{"lenet", "finished after 1234 iterations"})
		synctest.Wait() // the sender has tried all of that, and found nobody
		b.back()
		s.setStatus(status(2))
		synctest.Wait()
		s.setStatus(status(3))
		synctest.Wait()
		s.close()
		missing := fmt.Sprintf("%d lines are missing here: the controller was away, or they came too fast", more+1)
		want := []string{"status 2", missing}
		for i := more + 1; i < mostLines+more; i++ {
			want = append(want, fmt.Sprint("iteration ", i))
		}
		want = append(want, "finished after 1234 iterations", "status 3")
		if !slices.Equal(b.lines, want) {
			t.Errorf("%d lines were said, want %d; the first are %q, the last %q", len(b.lines), len(want),
				b.lines[:min(3, len(b.lines))], b.lines[max(0, len(b.lines)-3):])
		}
	})
}

// The log of a job says how many of its lines were refused.
func TestRefusedLinesAreTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &awayBus{there: true, full: 2}
		s := newSender(&Options{Executor: "x1", Bus: b, Log: slog.New(slog.DiscardHandler)})
		for i := range 3 {
			s.addLine(&logLine{"lenet", fmt.Sprint("iteration ", i)})
			synctest.Wait()
		}
		s.close()
		want := []string{"2 lines are missing here: the controller was away, or they came too fast", "iteration 2"}
		if !slices.Equal(b.lines, want) {
			t.Errorf("the log has %q, want %q", b.lines, want)
		}
	})
}
