package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
)

// logFlags say how a process that runs on logs.
type logFlags struct {
	format string
	level  slog.Level
}

const (
	textLog = "text"
	jsonLog = "json"
)

var logLevels = []string{"debug", "info", "warn", "error"}

func (f *logFlags) register(c *cobra.Command) {
	f.format = textLog
	c.Flags().Var((*logFormat)(&f.format), "log-format",
		"log format: text, or json (one object per line with time, level, msg and, if they apply, event, job, device "+
			"and epoch)")
	complete(c, "log-format", textLog, jsonLog)
	c.Flags().Var((*logLevel)(&f.level), "log-level", "minimum log level: debug, info, warn or error")
	complete(c, "log-level", logLevels...)
}

// args are the flags that have another process log as this one does.
func (f *logFlags) args() []string {
	return []string{"--log-format", f.format, "--log-level", (*logLevel)(&f.level).String()}
}

// logFormat is the value of --log-format.
type logFormat string

func (*logFormat) Type() string     { return "string" }
func (v *logFormat) String() string { return string(*v) }

func (v *logFormat) Set(text string) error {
	if text != textLog && text != jsonLog {
		return fmt.Errorf("give %s or %s", textLog, jsonLog)
	}
	*v = logFormat(text)
	return nil
}

// logLevel is the value of --log-level.
type logLevel slog.Level

func (*logLevel) Type() string     { return "string" }
func (v *logLevel) String() string { return strings.ToLower(slog.Level(*v).String()) }

func (v *logLevel) Set(text string) error {
	for i, level := range [...]slog.Level{slog.LevelDebug, slog.LevelInfo, slog.LevelWarn, slog.LevelError} {
		if text == logLevels[i] {
			*v = logLevel(level)
			return nil
		}
	}
	return fmt.Errorf("give %s", strings.Join(logLevels, ", "))
}

// logger logs to a file. Any goroutine may use it.
func (f *logFlags) logger(out io.Writer) *slog.Logger {
	if f.format == jsonLog {
		return slog.New(slog.NewJSONHandler(out, &slog.HandlerOptions{Level: f.level}))
	}
	return slog.New(&textHandler{out: out, level: f.level})
}

// lines logs lines of a level.
func lines(log *slog.Logger, level slog.Level) func(line string) {
	return func(line string) { log.Log(context.Background(), level, line) }
}

// textHandler writes records as lines for people: the time of day, the message, and attributes that it does not say
// already. A record with the attribute event says all of its attributes in its message. What a logger was given With
// is said of the whole process, and left out.
type textHandler struct {
	mu    sync.Mutex
	out   io.Writer
	level slog.Level
}

func (h *textHandler) Enabled(_ context.Context, level slog.Level) bool { return level >= h.level }

func (h *textHandler) Handle(_ context.Context, r slog.Record) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	_, err := fmt.Fprintln(h.out, r.Time.Format(time.TimeOnly), strings.ReplaceAll(sentence(r), "\n", "; "))
	return err
}

// sentence is what a record says: its message, and attributes that it does not say already.
func sentence(r slog.Record) string {
	var more strings.Builder
	whole := false
	r.Attrs(func(a slog.Attr) bool {
		switch a.Key {
		case "event":
			whole = true
		case "err":
			fmt.Fprintf(&more, ": %v", a.Value)
		default:
			fmt.Fprintf(&more, " %s=%v", a.Key, a.Value)
		}
		return true
	})
	if whole {
		return r.Message
	}
	return r.Message + more.String()
}

func (h *textHandler) WithAttrs([]slog.Attr) slog.Handler { return h }
func (h *textHandler) WithGroup(string) slog.Handler      { return h } // nobody groups

// sayHandler says what is logged, from info on, as the command says its own lines.
type sayHandler func(line string)

func (sayHandler) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelInfo }

func (h sayHandler) Handle(_ context.Context, r slog.Record) error {
	h(sentence(r))
	return nil
}

func (h sayHandler) WithAttrs([]slog.Attr) slog.Handler { return h }
func (h sayHandler) WithGroup(string) slog.Handler      { return h }
