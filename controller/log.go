package controller

import (
	"log/slog"

	"tensile/wire"
)

// level is the level of the event's line in a log.
func (e *Event) level() slog.Level {
	switch e.Kind {
	case Ended:
		if e.State == wire.JobFailed {
			return slog.LevelError
		}
	case SentAway, OutOfReach, Killed, Doubled, Repelled, Troubled, Stuck, Restarted:
		return slog.LevelWarn
	}
	return slog.LevelInfo
}

// attrs are the event's facts for programs, under keys that stay: event, job, executor, epoch, state, iterations,
// bytes, reason, why, device and others.
func (e *Event) attrs() []slog.Attr {
	list := []slog.Attr{slog.String("event", string(e.Kind))}
	text := func(key, value string) {
		if value != "" {
			list = append(list, slog.String(key, value))
		}
	}
	number := func(key string, n int64) {
		if n != 0 {
			list = append(list, slog.Int64(key, n))
		}
	}
	text("job", e.Job)
	text("executor", e.Executor)
	text("host", e.Host)
	number("epoch", e.Epoch)
	text("state", string(e.State))
	text("device", e.Device)
	if e.Kind == Migrating {
		list = append(list, slog.Duration("gain", e.Gain), slog.Duration("transition", e.Transition))
	}
	if e.Kind == Disproved {
		list = append(list, slog.Duration("gain", e.Gain), slog.Duration("saved", e.Saved),
			slog.Duration("rest", e.Rest))
	}
	if e.Kind == Ended || e.Kind == Rested || e.Kind == Restarted {
		list = append(list, slog.Int("iterations", e.Iterations))
	}
	number("plans", int64(e.Plans))
	number("bytes", int64(e.Bytes))
	number("budget_bytes", int64(e.Budget))
	text("cause", string(e.Cause))
	text("reason", e.Reason)
	text("why", e.Detail)
	return list
}
