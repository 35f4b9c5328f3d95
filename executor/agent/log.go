package agent

import (
	"log/slog"

	"tensile/wire"
)

// level is how bad an event is.
func (e *Event) level() slog.Level {
	switch {
	case e.Kind == Over && e.State == wire.Failed:
		return slog.LevelError
	case e.Kind == Troubled || e.Kind == Dropped || e.Kind == Interrupted:
		return slog.LevelWarn
	}
	return slog.LevelInfo
}

// attrs are an event's facts for programs, under keys that stay: event, job, epoch, state, iteration, iterations,
// bytes, took_ns, stall_ns, gate_ns, file, why.
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
	number("epoch", e.Epoch)
	text("model", e.Model)
	text("state", string(e.State))
	switch e.Kind {
	case Iterated:
		list = append(list, slog.Int("iteration", e.Iterations), slog.Duration("took_ns", e.Took),
			slog.Duration("stall_ns", e.Stall), slog.Duration("gate_ns", e.Gate))
		if e.Loss != nil {
			list = append(list, slog.Any("loss", e.Loss))
		}
	case Over, Interrupted, Dropped, Resumed, Checkpointed, Rested:
		list = append(list, slog.Int("iterations", e.Iterations))
	}
	number("bytes", int64(e.Arena))
	text("file", e.File)
	text("saved", e.Saved)
	text("why", e.Reason)
	return list
}
