package agent

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"

	"tensile/wire"
)

// awayBus is a bus that can be away.
type awayBus struct {
	Bus
	mu     sync.Mutex
	there  bool
	lines  []string
	told   chan struct{} // per status
	stuck  int           // appends that get no answer
	tried  int
	number []int64
}

func (b *awayBus) Connected() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.there
}

func (b *awayBus) Append(_ context.Context, log string, line []byte) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.tried++; b.stuck > 0 {
		b.stuck--
		return fmt.Errorf("no answer: %w", context.DeadlineExceeded)
	}
	b.lines = append(b.lines, string(line))
	return nil
}

func (b *awayBus) Put(_ context.Context, _ string, value []byte) error {
	s, err := wire.DecodeAs[wire.Status](value)
	b.mu.Lock()
	b.number = append(b.number, s.Number)
	b.lines = append(b.lines, fmt.Sprint("status ", s.Number))
	b.mu.Unlock()
	b.told <- struct{}{}
	return err
}

func (b *awayBus) set(there bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.there = there
}

// Lines that are logged while the controller is away are said when it is back, before the status that is newer than
// they are: the newest thousand, with a word about those that were too many.
func TestLinesAreKept(t *testing.T) {
	b := &awayBus{told: make(chan struct{}, 10)}
	s := newSender(&Options{Executor: "x1", Bus: b, Log: slog.New(slog.DiscardHandler)})
	status := func(n int64) *wire.Status { return &wire.Status{Executor: "x1", Number: n, Life: "1"} }
	const more = 234
	for i := range mostLines + more {
		s.line(&logLine{"lenet", fmt.Sprint("iteration ", i)})
		if i%100 == 0 {
			s.tell(status(1)) // which is lost
		}
	}
	s.line(&logLine{"lenet", "finished after 1234 iterations"})
	b.set(true)
	b.mu.Lock()
	b.stuck = 1
	b.mu.Unlock()
	s.tell(status(2))
	<-b.told
	s.tell(status(3))
	<-b.told
	s.close()
	lines := b.lines
	if at := slices.Index(lines, "status 2"); at >= 0 { // the first line got no answer then
		lines = slices.Delete(lines, at, at+1)
	}
	want := []string{fmt.Sprintf("%d lines are missing here: the controller was away", more+1)}
	for i := more + 1; i < mostLines+more; i++ {
		want = append(want, fmt.Sprint("iteration ", i))
	}
	want = append(want, "finished after 1234 iterations", "status 3")
	if !slices.Equal(lines, want) {
		t.Errorf("%d lines were said, want %d; the first are %q, the last %q", len(lines), len(want),
			lines[:min(3, len(lines))], lines[max(0, len(lines)-3):])
	}
}
