package main

import (
	"strings"
	"testing"
)

// What executors log reaches a terminal as text alone.
func TestLogsAreText(t *testing.T) {
	var out strings.Builder
	l := log{out: &out}
	l.add([]byte("loss\t1 \x1b]0;title\x07"))
	if got, want := out.String(), "loss 1 \uFFFD]0;title\uFFFD\n"; got != want {
		t.Errorf("logs prints %q, want %q", got, want)
	}
}
