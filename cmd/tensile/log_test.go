package main

import (
	"errors"
	"log/slog"
	"regexp"
	"strings"
	"testing"
)

// Controllers and executors log in one form: the time, then the message.
func TestLogForm(t *testing.T) {
	var out strings.Builder
	log := stamped(&out)
	log("executor lab has joined")
	slog.New(handler{log: log}).With("executor", "lab").Warn("a message was lost", "kind", "line", "err",
		errors.New("no\nconnection"))
	want := regexp.MustCompile(`^[0-9]{2}:[0-9]{2}:[0-9]{2} executor lab has joined
[0-9]{2}:[0-9]{2}:[0-9]{2} a message was lost executor=lab kind=line: no; connection
$`)
	if !want.MatchString(out.String()) {
		t.Errorf("got\n%swant what matches\n%s", &out, want)
	}
}
