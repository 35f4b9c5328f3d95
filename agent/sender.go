package agent

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"tensile/wire"
)

// sender says things that may take a while to say. Of statuses only the newest is worth it; of lines, too many are
// dropped.
type sender struct {
	bus      Bus
	log      *slog.Logger
	executor string

	ctx      context.Context
	cancel   context.CancelFunc
	statuses chan *wire.Status
	lines    chan *Line
	running  sync.WaitGroup
}

const (
	patience  = 5 * time.Second // with one message
	grace     = 3 * time.Second // with all that is left at the end
	mostLines = 1000            // that wait
)

func newSender(o *Options) *sender {
	s := &sender{bus: o.Bus, log: o.Log, executor: o.Executor, statuses: make(chan *wire.Status, 1), lines: make(chan *Line, mostLines)}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.running.Go(s.run)
	return s
}

// run sends lines and statuses until both channels are closed. What was logged before a status is sent before it: who
// hears that a job is over finds all of its log.
func (s *sender) run() {
	statuses, lines := s.statuses, s.lines
	for statuses != nil || lines != nil {
		select {
		case line, ok := <-lines:
			if !ok {
				lines = nil
				continue
			}
			s.sendLine(line)
		case status, ok := <-statuses:
			if !ok {
				statuses = nil
				continue
			}
			for n := len(lines); n > 0; n-- {
				s.sendLine(<-lines)
			}
			s.send("status", func(ctx context.Context) error {
				return s.bus.Put(ctx, wire.StatusKey(s.executor), wire.Encode(*status))
			})
		}
	}
}

func (s *sender) sendLine(line *Line) {
	s.send("line", func(ctx context.Context) error {
		return s.bus.Append(ctx, wire.LogSubject(s.executor, line.Job), []byte(line.Text))
	})
}

func (s *sender) send(what string, send func(context.Context) error) {
	ctx, cancel := context.WithTimeout(s.ctx, patience)
	defer cancel()
	if err := send(ctx); err != nil {
		s.log.Warn("a message was lost", "executor", s.executor, "kind", what, "err", err)
	}
}

// status has a status said, in place of one that was not yet. One goroutine calls it.
func (s *sender) status(status *wire.Status) {
	select {
	case <-s.statuses:
	default:
	}
	s.statuses <- status
}

func (s *sender) line(line *Line) {
	select {
	case s.lines <- line:
	default:
	}
}

// close says what is left, if that does not take long.
func (s *sender) close() {
	close(s.statuses)
	close(s.lines)
	hurry := time.AfterFunc(grace, s.cancel)
	s.running.Wait()
	hurry.Stop()
	s.cancel()
}
