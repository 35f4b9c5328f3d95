package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"tensile/wire"
)

// logLine is a line for the log of a job.
type logLine struct{ Job, Text string }

// sender says things that may take a while to say. Of statuses only the newest is worth it. Lines are kept until they
// are said: while the controller is away too, the newest mostLines of them. What was logged before a status is sent
// before it: who hears that a job is over finds all of its log.
type sender struct {
	bus      Bus
	log      *slog.Logger
	executor string

	ctx     context.Context
	cancel  context.CancelFunc
	ready   chan struct{}
	running sync.WaitGroup
	failing bool // the last status was not said

	mu     sync.Mutex
	status *wire.Status // nil: none to be said
	lines  []*logLine
	lost   map[string]int // lines per job that were too many, and what was said later is still to be said
	closed bool
}

const (
	busTimeout = 5 * time.Second // with one message
	// with all that is left at the end: a machine that is busy may keep a message waiting as long as busTimeout
	grace     = 3 * busTimeout
	mostLines = 1000 // that wait
)

func newSender(o *Options) *sender {
	s := &sender{bus: o.Bus, log: o.Log, executor: o.Executor, ready: make(chan struct{}, 1),
		lost: make(map[string]int)}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.running.Go(s.run)
	return s
}

// run sends what is queued until the sender is closed. What could not be sent is tried again with the next status.
func (s *sender) run() {
	for range s.ready {
		s.mu.Lock()
		status, lines, closed := s.status, s.lines, s.closed
		s.status, s.lines = nil, nil
		s.mu.Unlock()
		rest := s.sendLines(lines)
		if status != nil {
			s.sendStatus(status)
		}
		s.mu.Lock()
		s.lines = append(rest, s.lines...)
		s.trim()
		s.mu.Unlock()
		if closed {
			return
		}
	}
}

// trim forgets the oldest lines if there are too many. The mutex is held.
func (s *sender) trim() {
	for len(s.lines) > mostLines {
		s.lost[s.lines[0].Job]++
		s.lines = s.lines[1:]
	}
}

// sendLines returns the lines that could not be said and are worth another try.
func (s *sender) sendLines(lines []*logLine) []*logLine {
	for i, line := range lines {
		err := s.sendLost(line.Job)
		if err == nil {
			err = s.sendLine(line)
		}
		switch {
		case errors.Is(err, wire.ErrAway) || errors.Is(err, context.DeadlineExceeded):
			return slices.Clip(lines[i:])
		case err != nil:
			s.log.Warn("a line was lost", "job", line.Job, "err", err)
			s.mu.Lock()
			s.lost[line.Job]++
			s.mu.Unlock()
		}
	}
	return nil
}

func (s *sender) sendLine(line *logLine) error {
	return s.send(func(ctx context.Context) error {
		return s.bus.Append(ctx, wire.LogSubject(s.executor, line.Job), []byte(line.Text))
	})
}

// sendLost sends how many lines of a job are missing before the next.
func (s *sender) sendLost(job string) error {
	s.mu.Lock()
	n := s.lost[job]
	s.mu.Unlock()
	if n == 0 {
		return nil
	}
	missing := fmt.Sprintf("%d lines are missing here: the controller was away, or they came too fast", n)
	if err := s.sendLine(&logLine{job, missing}); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lost[job] -= n; s.lost[job] == 0 {
		delete(s.lost, job)
	}
	return nil
}

func (s *sender) sendStatus(status *wire.Status) {
	err := s.send(func(ctx context.Context) error {
		return s.bus.Put(ctx, wire.StatusKey(s.executor), wire.Encode(*status))
	})
	if err != nil && !s.failing {
		s.log.Warn("the controller cannot be told what this executor does; trying again", "err", err)
	}
	s.failing = err != nil
}

func (s *sender) send(send func(context.Context) error) error {
	if !s.bus.Connected() {
		return wire.ErrAway
	}
	ctx, cancel := context.WithTimeout(s.ctx, busTimeout)
	defer cancel()
	return send(ctx)
}

// change makes a change to what is queued and wakes the sender.
func (s *sender) change(change func()) {
	s.mu.Lock()
	change()
	s.mu.Unlock()
	select {
	case s.ready <- struct{}{}:
	default:
	}
}

// setStatus queues a status, in place of one that was not sent yet.
func (s *sender) setStatus(status *wire.Status) { s.change(func() { s.status = status }) }

func (s *sender) addLine(line *logLine) {
	s.change(func() {
		s.lines = append(s.lines, line)
		s.trim()
	})
}

// close says what is left, if that does not take long.
func (s *sender) close() {
	s.change(func() { s.closed = true })
	hurry := time.AfterFunc(grace, s.cancel)
	s.running.Wait()
	hurry.Stop()
	s.cancel()
}
