package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"time"
)

// stamped returns a log function: each line stands behind the time. It may be called from any goroutine.
func stamped(out io.Writer) func(line string) {
	var mu sync.Mutex
	return func(line string) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Fprintln(out, time.Now().Format(time.TimeOnly), strings.ReplaceAll(line, "\n", "; "))
	}
}

// handler writes records as lines of the same form: the message, then its attributes.
type handler struct {
	log   func(line string)
	attrs []slog.Attr
}

func (handler) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelInfo }

func (h handler) Handle(_ context.Context, r slog.Record) error {
	line := r.Message
	add := func(a slog.Attr) bool {
		if a.Key == "err" {
			line += fmt.Sprintf(": %v", a.Value)
		} else {
			line += fmt.Sprintf(" %s=%v", a.Key, a.Value)
		}
		return true
	}
	for _, a := range h.attrs {
		add(a)
	}
	r.Attrs(add)
	h.log(line)
	return nil
}

func (h handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	h.attrs = append(h.attrs[:len(h.attrs):len(h.attrs)], attrs...)
	return h
}

func (h handler) WithGroup(string) slog.Handler { return h } // nobody groups
