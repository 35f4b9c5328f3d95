package cuda

import (
	"fmt"
	"time"

	"tensile/device"
	"tensile/plan/program"
)

// reach takes note that a command has ended, and so all before it on its lane.
func (s *sent) reach() error {
	for !s.done {
		if err := s.lane.end(); err != nil {
			return err
		}
	}
	return nil
}

// end takes note that the first command on a lane has ended, and, before that, everything that it has waited for.
func (l *lane) end() error {
	j, s := l.job, l.sent[0]
	c := s.command()
	for _, before := range s.after {
		if err := before.reach(); err != nil {
			return err
		}
	}
	e := device.Event{Job: j, Section: s.round.section, Iteration: s.round.iteration, Index: s.index}
	if err := s.times(&e); err != nil {
		return fmt.Errorf("job %s, iteration %d: %s: %w", j.options.Name, s.round.iteration, j.describe(c), err)
	}
	j.device.events.put(s.start)
	if !s.watched {
		j.device.events.put(s.end)
	} else {
		j.device.stale++
	}
	s.after = nil
	l.sent, l.last, s.ended, s.done = l.sent[1:], e.End, e.End, true
	j.touched = max(j.touched, j.loaded.program.Reach(c))
	j.device.ended = append(j.device.ended, e)

	if c.Kind == program.Kernel {
		j.device.arrivals.End(j.loaded.arrival, s.round.section, c)
	}
	if l.unit == program.Host {
		j.put.End(l.stream)
	}
	j.ended.End(l.stream)
	if s.round.left--; s.round.left == 0 {
		j.device.events.put(s.round.base)
		delete(j.rounds, s.round.run)
	}
	return nil
}

// times fills in when a command that has ended was ready, started and ended. The clocks of streams and of the host
// differ by microseconds, so that nothing is before what it came after, nor after now.
func (s *sent) times(e *device.Event) (err error) {
	now := s.lane.job.device.Now()
	e.Ready = max(s.ready, s.lane.last)
	for _, before := range s.after {
		e.Ready = max(e.Ready, before.ended)
	}
	start, end := e.Ready, now // on the host
	if s.start != 0 {
		if start, err = s.timeOf(s.start); err != nil {
			return err
		}
	}
	if s.end != 0 {
		if end, err = s.timeOf(s.end); err != nil {
			return err
		}
	}
	e.Start = min(max(start, e.Ready), now)
	e.End = min(max(end, e.Start), now)
	return nil
}

// timeOf returns when an event of a stream was reached.
func (s *sent) timeOf(e Event) (time.Duration, error) {
	after, err := s.lane.job.device.driver.Elapsed(s.round.base, e)
	return s.round.at + after, err
}
