package wire

import "log/slog"

// Facts are what a line of a log says for programs, under keys that stay: first event, its kind.
type Facts []slog.Attr

// NewFacts returns the facts of an event, so far its kind.
func NewFacts(kind string) Facts { return Facts{slog.String("event", kind)} }

// Text adds a text, if there is one.
func (f *Facts) Text(key, value string) {
	if value != "" {
		*f = append(*f, slog.String(key, value))
	}
}

// Number adds a number that is not 0.
func (f *Facts) Number(key string, n int64) {
	if n != 0 {
		*f = append(*f, slog.Int64(key, n))
	}
}
