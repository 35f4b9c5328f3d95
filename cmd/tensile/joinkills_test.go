//go:build linux

package main

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// joinFake joins a fake script in a way, and waits until it trains.
func joinFake(t *testing.T, how string) *family {
	t.Helper()
	file, err := filepath.Abs("../../external/testdata/recorded.json")
	if err != nil {
		t.Fatal(err)
	}
	p := start(t, t.TempDir(), "join", "--", "fakescript", file, "3", how)
	p.line("^training$")
	return p
}

// A script whose sidecar is interrupted is told to end, and the command ends as it does.
func TestJoinInterrupted(t *testing.T) {
	t.Parallel()
	p := joinFake(t, "stopped")
	p.signal(syscall.SIGTERM)
	if err := p.wait(); err != nil || !strings.Contains(p.stderr.String(), "2 iterations, none by a plan") {
		t.Errorf("it ended with %v; stderr:\n%s", err, &p.stderr)
	}
}

// A script whose sidecar is killed trains on.
func TestJoinKilled(t *testing.T) {
	t.Parallel()
	p := joinFake(t, "orphan")
	p.signal(syscall.SIGKILL)
	p.line("^trained on$")
}
